package cli

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"hammerlock/checker"
	"hammerlock/internal/harness"
	"hammerlock/results"
)

// mostSaved is the number of ended runs whose metrics are served. Older runs are dropped.
const mostSaved = 100

type endedRuns struct {
	mu  sync.Mutex
	all []*results.Run
}

func (s *endedRuns) add(r *results.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all[max(len(s.all)+1-mostSaved, 0):], r)
}

// The method violations counts the violations in the verdicts of an ended run. It returns 0 if no run of that name
// has ended.
func (s *endedRuns) violations(name string) (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.all {
		for i := range r.Verdicts {
			if v := &r.Verdicts[i]; r.Name == name && v.Status == checker.Fail {
				n += max(v.Violations, 1)
			}
		}
	}
	return n
}

// collect sends the counts of visits and errors of all runs, including the run of the event, which may be in
// progress. For ended runs it also sends the verdicts.
func (s *endedRuns) collect(to chan<- prometheus.Metric, e *harness.Event) {
	s.mu.Lock()
	all := s.all
	s.mu.Unlock()
	c := runCollector{to: to}
	for _, r := range all {
		labels := prometheus.Labels{"topology": r.Topology, "lock": r.Lock, "run": r.Name}
		if !r.Explored {
			c.run(labels, r.Visits, r.Errors, r.Wire != "")
		}
		for _, v := range r.Verdicts {
			c.send("verdict", "1 for each verdict on a run that is over", prometheus.GaugeValue, 1,
				with(with(with(labels, "scenario", r.Scenario), "check", v.Checker), "verdict",
					strings.ToUpper(v.Status.String())))
		}
		if e.Name == r.Name {
			e = &harness.Event{} // the run of the event has ended, and is already in the list
		}
	}
	if e.Name != "" && e.Explored == nil {
		labels := prometheus.Labels{"topology": e.Combination.Topology.Name, "lock": e.Combination.Lock.Name,
			"run": e.Name}
		c.run(labels, e.Live.Visits, e.Live.Kinds, e.Combination.Plan.Program != nil)
	}
}

type runCollector struct{ to chan<- prometheus.Metric }

func (c runCollector) send(name, help string, kind prometheus.ValueType, value float64, labels prometheus.Labels) {
	c.to <- prometheus.MustNewConstMetric(prometheus.NewDesc("hammerlock_"+name, help, nil, labels), kind, value)
}

// run sends the counts of a run. If the run watched a program, only the number of grants is known.
func (c runCollector) run(labels prometheus.Labels, v results.Visits, errs map[string]int64, watched bool) {
	for _, x := range []struct {
		outcome string
		n       int64
	}{{"done", v.Done}, {"timeout", v.Timeout}, {"failed", v.Failed}, {"unknown", v.Unknown}, {"skipped", v.Skipped}} {
		if x.outcome == "done" || !watched {
			c.send("visits_total", "visits of the run within its measurement, by outcome: done ones are counted",
				prometheus.CounterValue, float64(x.n), with(labels, "outcome", x.outcome))
		}
	}
	for name, n := range errs { // the name consists of kind, outcome and reason, separated by spaces
		kind, rest, _ := strings.Cut(name, " ")
		outcome, reason, _ := strings.Cut(rest, " ")
		c.send("errors_total", "operations of the run that did not go well, by kind", prometheus.CounterValue,
			float64(n), with(with(with(labels, "kind", kind), "outcome", outcome), "reason", reason))
	}
}
