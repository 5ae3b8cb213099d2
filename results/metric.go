package results

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hammerlock/internal/human"
)

// Metric is a number of a run that can be compared, gated and searched for.
type Metric struct {
	Name  string
	Doc   string
	Unit  Unit
	More  bool  // more is better
	Facet Facet // what it is about
	Of    func(*Run) Reading
}

// Unit says how the numbers of a metric are written.
type Unit string

// The units.
const (
	Nanoseconds Unit = "ns"
	PerSecond   Unit = "/s"
	Share       Unit = "share" // 0 to 1
	Number      Unit = ""
)

// Facet is the side of a lock that a metric shows.
type Facet string

// The facets.
const (
	Speed    Facet = "faster"
	Patience Facet = "kinder to those who wait"
	Work     Facet = "more productive"
	Fair     Facet = "fairer"
	Expense  Facet = "cheaper"
	Accident Facet = "calmer"
)

// Support says what stands behind a reading.
type Support int

// The supports.
const (
	NoData    Support = iota
	Underfed          // there is data, but not enough to support this percentile
	AtLeast           // the true value is this or more: too many waits had no end
	Supported         // the value is what was measured
)

// Reading is what a run says of a metric.
type Reading struct {
	Value   float64
	Support Support
}

// distributions are the latencies that a metric can be a percentile of.
var distributions = []struct {
	name, doc string
	facet     Facet
	of        func(*Run) Percentiles
}{
	{"acquire", "wait of the winners", Speed, func(r *Run) Percentiles { return r.Latency.Acquire }},
	{"acquire_with_unfinished", "wait, unfinished ones included", Patience, func(r *Run) Percentiles { return r.Waiting.Unfinished }},
	{"random_waiter", "wait that a random waiter is in", Patience, func(r *Run) Percentiles { return r.Waiting.RandomWaiter }},
	{"response", "visit, from when it was due", Speed, func(r *Run) Percentiles { return r.Latency.Response }},
	{"response_with_unfinished", "as response, unfinished ones included", Speed, func(r *Run) Percentiles { return r.Waiting.Response }},
	{"handoff", "from release to the next grant", Speed, func(r *Run) Percentiles { return r.Latency.Handoff }},
	{"hold", "from grant to release", Speed, func(r *Run) Percentiles { return r.Latency.Hold }},
	{"release", "a release", Speed, func(r *Run) Percentiles { return r.Latency.Release }},
	{"try", "one try", Speed, func(r *Run) Percentiles { return r.Latency.Try }},
}

// statistics are what a metric can say of a distribution.
var statistics = []struct {
	name string
	of   func(Percentiles) Reading
}{
	{"p50", func(p Percentiles) Reading { return p.reading(p.P50) }},
	{"p90", func(p Percentiles) Reading { return p.reading(p.P90) }},
	{"p99", func(p Percentiles) Reading { return p.reading(p.P99) }},
	{"p999", func(p Percentiles) Reading { return p.reading(p.P999) }},
	{"max", func(p Percentiles) Reading { return p.reading(&p.Max) }},
	{"mean", func(p Percentiles) Reading { return p.reading(&p.Mean) }},
}

func (p Percentiles) reading(v *int64) Reading {
	switch {
	case p.Count == 0:
		return Reading{}
	case v == nil:
		return Reading{Support: Underfed}
	case *v == int64(Beyond):
		return Reading{float64(p.Max), AtLeast}
	default:
		return Reading{float64(*v), Supported}
	}
}

// Metrics lists the metrics.
var Metrics = slices.Concat(latencyMetrics(), []Metric{
	{"throughput", "counted visits a second", PerSecond, true, Work, func(r *Run) Reading {
		return known(r.Throughput, r.Measured > 0)
	}},
	{"fairness.jain", "Jain's index of the workers' visits", Share, true, Fair, func(r *Run) Reading {
		return known(r.Fairness.Jain, r.Visits.Done > 0)
	}},
	{"fairness.starving", "workers with less than a tenth of their share", Number, false, Fair, func(r *Run) Reading {
		return known(float64(r.Fairness.Starving), r.Visits.Done > 0)
	}},
	{"fairness.idle", "share of the time in which the lock stood idle although somebody waited", Share, false, Work,
		func(r *Run) Reading { return maybe(r.Fairness.IdleShare) }},
	{"cost.round_trips", "round trips a visit", Number, false, Expense, func(r *Run) Reading { return maybe(r.Cost.RoundTrips) }},
	{"cost.commands", "commands a visit, on all servers", Number, false, Expense, func(r *Run) Reading { return maybe(r.Cost.Commands) }},
	{"cost.server_cpu", "CPU time of the servers a visit", Nanoseconds, false, Expense, func(r *Run) Reading { return maybe(r.Cost.ServerCPU) }},
	{"visits.timeout", "visits that gave up waiting", Number, false, Accident, func(r *Run) Reading {
		return known(float64(r.Visits.Timeout), r.attempted())
	}},
	{"visits.failed", "visits that failed", Number, false, Accident, func(r *Run) Reading {
		return known(float64(r.Visits.Failed), r.attempted())
	}},
	{"visits.unknown", "visits that were perhaps counted", Number, false, Accident, func(r *Run) Reading {
		return known(float64(r.Visits.Unknown), r.attempted())
	}},
	{"visits.skipped", "visits whose patience ended before a worker was free", Number, false, Accident, func(r *Run) Reading {
		return known(float64(r.Visits.Skipped), r.attempted())
	}},
	{"counter.lost", "page views that were lost", Number, false, Accident, func(r *Run) Reading {
		return known(float64(r.Views.Lost), r.Views.Acknowledged > 0)
	}},
})

// Headline are the metrics of a comparison unless others are asked for. They are few, because each one more makes
// it harder for all to tell a difference from noise.
var Headline = []string{"throughput", "response.p50", "response.p99", "random_waiter.p50", "fairness.jain",
	"cost.round_trips", "cost.commands"}

func latencyMetrics() (all []Metric) {
	for _, d := range distributions {
		for _, s := range statistics {
			all = append(all, Metric{Name: d.name + "." + s.name, Doc: d.doc, Unit: Nanoseconds, Facet: d.facet,
				Of: func(r *Run) Reading { return s.of(d.of(r)) }})
		}
	}
	return all
}

func known(x float64, is bool) Reading {
	if !is || math.IsNaN(x) {
		return Reading{}
	}
	return Reading{x, Supported}
}

func maybe(x *float64) Reading {
	if x == nil {
		return Reading{}
	}
	return Reading{*x, Supported}
}

func (r *Run) attempted() bool { return r.Visits.Begun+r.Visits.Skipped > 0 }

// FindMetric returns the metric with that name; the error names the good ones.
func FindMetric(name string) (Metric, error) {
	for _, m := range Metrics {
		if m.Name == name {
			return m, nil
		}
	}
	return Metric{}, fmt.Errorf("no metric %q: there is %s", name, MetricNames())
}

// MetricNames lists the metrics for people, those of one distribution together.
func MetricNames() string {
	var percentiles, names, rest []string
	for _, s := range statistics {
		percentiles = append(percentiles, s.name)
	}
	for _, d := range distributions {
		names = append(names, d.name)
	}
	for _, m := range Metrics[len(distributions)*len(statistics):] {
		rest = append(rest, m.Name)
	}
	return fmt.Sprintf("%s, each with .%s; %s", strings.Join(names, ", "), strings.Join(percentiles, " ."), strings.Join(rest, ", "))
}

// Format writes a value of the metric with its unit.
func (m Metric) Format(v float64) string {
	switch m.Unit {
	case Nanoseconds:
		return human.Duration(time.Duration(v))
	case PerSecond:
		return human.Number(v) + "/s"
	default:
		return human.Number(v)
	}
}

// Timed tells whether the metric is about time, so that a generator that is too slow spoils it.
func (m Metric) Timed() bool { return m.Facet == Speed || m.Facet == Patience || m.Facet == Work }
