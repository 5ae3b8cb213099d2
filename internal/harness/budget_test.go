package harness

import (
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// TestTheBudget: all scenarios of a lock on a topology share a time budget. A scenario is skipped if it would end
// after the budget, unless it is the first.
func TestTheBudget(t *testing.T) {
	for i, tt := range []struct {
		number         int
		duration, gone time.Duration
		begins         bool
	}{
		{0, time.Hour, 0, true}, // the first scenario
		{1, 10 * time.Second, 45 * time.Second, true},
		{1, 10 * time.Second, 55 * time.Second, false},
		{1, time.Second, 55 * time.Second, true}, // a shorter one fits
	} {
		c := Combination{Scenario: scenarios.Scenario{Name: "some"}, Plan: Plan{Duration: tt.duration}}
		j := Job{Plan: Plan{Budget: time.Minute}, Combinations: []Combination{c, c}}
		b := batch{Job: &j, since: time.Now().Add(-tt.gone)}
		if begins := b.begins(tt.number, 0); begins != tt.begins || len(j.NotRun) == 1 == begins {
			t.Errorf("%d: %v of %v, after %v: %v, %v", i, tt.duration, j.Plan.Budget, tt.gone, begins, j.NotRun)
		}
	}
}

// TestNothingBeginsAfterARunThatIsEnough: no run begins after Job.Enough returned true or, with --fail-fast, after a
// failed run. The scenarios that are left out are reported.
func TestNothingBeginsAfterARunThatIsEnough(t *testing.T) {
	leak := &results.Run{Verdicts: []checker.Verdict{{Status: checker.Fail, Cause: history.Leak}}}
	enough := func(run *results.Run) bool { return run.Verdicts[0].Cause == history.Leak }
	for name, tt := range map[string]struct {
		fast   bool
		enough func(*results.Run) bool
		run    *results.Run
		ended  bool
	}{
		"nobody asks":       {false, nil, leak, false},
		"it is enough":      {false, enough, leak, true},
		"it is not":         {false, enough, &results.Run{Verdicts: []checker.Verdict{{Status: checker.Pass}}}, false},
		"fail fast, failed": {true, nil, leak, true},
		"fail fast, another": {
			true, enough, &results.Run{Verdicts: []checker.Verdict{{Status: checker.Fail, Cause: history.Stuck}}}, true,
		},
	} {
		c := Combination{Scenario: scenarios.Scenario{Name: "some"}}
		j := Job{Plan: Plan{Budget: time.Minute, FailFast: tt.fast}, Combinations: []Combination{c, c},
			Enough: tt.enough}
		b := batch{Job: &j, since: time.Now(), runs: map[int]*results.Run{}}
		b.take(outcome{run: tt.run})
		if begins := b.begins(1, 0); begins == tt.ended || tt.ended != (len(j.NotRun) == 1 && j.NotRun[0].Why != "") {
			t.Errorf("%s: begins %v, %+v", name, begins, j.NotRun)
		}
	}
}

// TestAScenarioIsStretched: if the machine was too slow, load, faults and duration grow by the measured factor, up to
// eight. If a scenario was only too short, its duration alone grows.
func TestAScenarioIsStretched(t *testing.T) {
	const ms = time.Millisecond
	c := Combination{Steps: []faults.Step{{Arg: "80ms", From: 200 * ms, To: 900 * ms}, {Arg: "20", From: 300 * ms}}}
	c.Plan.Workload.TTL, c.Plan.Workload.Wait, c.Plan.Duration = 400*ms, time.Second, 2*time.Second
	steps := c.Steps
	for i, tt := range []struct {
		by              int
		all             bool
		stretched       int
		lease, duration time.Duration
		arg             string
	}{
		{2, false, 0, 400 * ms, 4 * time.Second, "80ms"},
		{4, true, 4, 1600 * ms, 16 * time.Second, "320ms"},
		{5, true, 8, 3200 * ms, 32 * time.Second, "640ms"},
		{2, true, 8, 3200 * ms, 64 * time.Second, "640ms"},
	} {
		c.again(tt.by, tt.all, "why")
		w := &c.Plan.Workload
		if c.Stretched != tt.stretched || w.TTL != tt.lease || c.Plan.Duration != tt.duration ||
			c.Steps[0].Arg != tt.arg || c.Steps[1].Arg != "20" {
			t.Errorf("%d: got %+v, lease %v, %v", i, c, w.TTL, c.Plan.Duration)
		}
		if got := c.idle(); got != time.Duration(tt.stretched)*time.Second {
			t.Errorf("%d: the judge lets a lock idle for %v", i, got)
		}
		if w.Wait != max(1, time.Duration(tt.stretched))*time.Second ||
			c.Steps[0].To != max(1, time.Duration(tt.stretched))*900*ms || len(c.Before) != i+1 ||
			w.Seed != uint64(i+1) {
			t.Errorf("%d: got %+v", i, c)
		}
	}
	if steps[0].From != 200*ms {
		t.Error("the steps of another run have changed")
	}
	c.Scenario.CostJudged, c.Stretched = true, 0
	if c.again(2, true, "why"); c.Plan.Workload.TTL != 3200*ms || c.Plan.Duration != 128*time.Second {
		t.Errorf("where requests are counted the times of the load have changed: %+v", c.Plan)
	}
}

// TestAScenarioIsAsLongAsAProgramNeeds: it grows up to eight times. If that is too short, it is not run.
func TestAScenarioIsAsLongAsAProgramNeeds(t *testing.T) {
	for least, want := range map[time.Duration]int{0: 0, time.Second: 0, 2500 * time.Millisecond: 3, 8 * time.Second: 8,
		9 * time.Second: -1} {
		leader, _ := scenarios.Find("leader")
		c := &check{
			plan: &Plan{Scenarios: []scenarios.Scenario{leader}, Counter: workload.AllCounters[0]}, mistakes: nil,
		}
		lock := locks.Spec{Name: "exec:x@1", Claims: history.Claims{Excludes: true, Expires: true, Renews: true},
			Program: &locks.Program{Least: least}}
		all := c.strained([]Combination{{Topology: topologies.All[0], Lock: lock}})
		if want < 0 {
			if len(all) > 0 || len(c.not) != 1 || !strings.Contains(c.not[0].Why, "too short") {
				t.Errorf("%v: got %d runs, %v", least, len(all), c.not)
			}
			continue
		}
		c.faults(all)
		by := time.Duration(max(want, 1))
		if x := all[0]; x.Stretched != want || x.Plan.Workload.TTL != by*time.Second ||
			x.Plan.Duration != by*leader.Duration || x.Steps[0].From != by*700*time.Millisecond {
			t.Errorf("%v: stretched by %d, leases of %v, %v, %v", least, x.Stretched, x.Plan.Workload.TTL,
				x.Plan.Duration, x.Steps[0].From)
		}
	}
}

// TestAScenarioIsAPlan: it leaves none of its settings to the next scenario.
func TestAScenarioIsAPlan(t *testing.T) {
	p := Default()
	p.Topologies = []topologies.Spec{topologies.All[0]}
	p.Scenarios, p.Out, p.RedisServer = scenarios.All, t.TempDir(), topologies.EmbeddedName
	p.Verify = true
	j, err := p.Check(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(j.Combinations)+len(j.NotRun) != len(scenarios.All) || len(j.NotRun) == 0 {
		t.Errorf("%d scenarios are run, %d are not", len(j.Combinations), len(j.NotRun))
	}
	for _, c := range j.Combinations {
		if c.Plan.Processes > 1 {
			t.Errorf("%s has %d processes beside a server in one of them", c.Scenario.Name, c.Plan.Processes)
		}
		if c.Plan.Counter.Name != p.Counter.Name && c.Scenario.Counter.Name == "" {
			t.Errorf("%s counts in %s", c.Scenario.Name, c.Plan.Counter.Name)
		}
	}
}
