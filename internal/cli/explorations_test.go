package cli

import (
	"errors"
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/explore"
	"hammerlock/internal/harness"
	"hammerlock/internal/web"
	"hammerlock/results"
)

// TestMetricsOfAnExploration reads the metrics during two explorations and at their end. There is no metric of a
// measurement, because an exploration measures nothing.
func TestMetricsOfAnExploration(t *testing.T) {
	n, err := serveMetrics("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.close(t.Context(), "") }()
	s := &series{o: &options{quiet: true}, views: shows{n}}
	expect := func(want ...string) {
		t.Helper()
		families, err := n.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, f := range families {
			all.WriteString(strings.ReplaceAll(f.String(), `"`, "'") + "\n")
		}
		for _, w := range want {
			if !strings.Contains(all.String(), w) {
				t.Errorf("no %s in:\n%s", w, all.String())
			}
		}
		for _, no := range []string{"visits", "waiting", "acquire", "faults", "hammerlock_elapsed"} {
			if strings.Contains(all.String(), "hammerlock_"+no) {
				t.Errorf("an exploration has no %s:\n%s", no, all.String())
			}
		}
	}
	orders := &explore.Orders{Lock: "lease"}
	x := s.watch(orders, 1, 2)
	expect("hammerlock_run", "'starting'", "'memory'")
	orders.Tell(explore.Progress{Deviations: 2, Run: 100, Of: 1000, Further: 50, Schedules: 300, Left: time.Minute})
	expect("'running'", "hammerlock_explore_schedules_total", "value:300", "hammerlock_explore_remaining_schedules",
		"value:950", "hammerlock_explore_remaining_seconds", "value:60")
	r := &explore.Report{Lock: "lease", Status: checker.Fail, Levels: []explore.Level{{Schedules: 7, Left: 3}}}
	j := results.Judgement{Topology: "memory", Lock: "lease", Scenario: "explore",
		Verdicts: []checker.Verdict{{Checker: "exclusion", Status: checker.Fail}}}
	x.end(r, &j)
	expect("'saved'", "hammerlock_violations_total", "value:1", "value:7", "value:3", "'FAIL'")
	s.watch(&explore.Orders{Lock: "spin"}, 2, 2)
	expect("'spin'", "'FAIL'")
}

// TestAnExplorationHasNoLinkWithoutARun: one that found nothing is not saved.
func TestAnExplorationHasNoLinkWithoutARun(t *testing.T) {
	server, err := web.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &livePage{server: server}
	s := &series{o: &options{quiet: true}, views: shows{p}}
	x := s.watch(&explore.Orders{Lock: "lease"}, 1, 1)
	x.end(&explore.Report{Lock: "lease", Status: checker.Pass, Reason: "nothing to explore"}, &results.Judgement{})
	if m := p.last.Exploration; m == nil || m.Verdict != "PASS" || m.Text != "nothing to explore" {
		t.Errorf("the page shows %+v", m)
	}
	if e := (&harness.Event{}); explorationOf(e) != nil {
		t.Error("a run is shown as an exploration")
	}
	address := server.URL() + "run/0"
	if text := fetch(address); !strings.Contains(text, "404") {
		t.Errorf("there is a link to %s", text)
	}
	if err := p.close(t.Context(), ""); err != nil {
		t.Error(err)
	}
}

// TestTheWorstExplorationDecides: a violation comes before an interrupt and an error, and both before a lack of time.
func TestTheWorstExplorationDecides(t *testing.T) {
	pass, fail, open := explore.Report{Status: checker.Pass}, explore.Report{Status: checker.Fail}, explore.Report{}
	full := errors.New("no space left on device")
	for name, c := range map[string]struct {
		all  []explore.Report
		err  error
		want int
	}{
		"all passed":       {[]explore.Report{pass, pass}, nil, Passed},
		"too little time":  {[]explore.Report{pass, open}, nil, Inconclusive},
		"a violation":      {[]explore.Report{open, fail, pass}, nil, Violation},
		"an error":         {[]explore.Report{pass, open}, full, Broken},
		"both":             {[]explore.Report{pass, fail}, full, Violation},
		"nothing explored": {nil, full, Broken},
	} {
		if got := exit(t.Context(), weighExplored(c.all), nil, c.err); got.Code != c.want {
			t.Errorf("%s: got %+v, want %d", name, got, c.want)
		}
	}
}
