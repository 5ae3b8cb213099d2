package harness

import (
	"testing"
	"time"

	"hammerlock/scenarios"
	"hammerlock/topologies"
)

// TestTheBudget is for all scenarios of a lock on a topology: none but the first begins that would end later.
func TestTheBudget(t *testing.T) {
	var c Combination
	b := budget{whole: time.Minute}
	b.begin(&c, 50*time.Second)
	if !b.spent(11*time.Second) || b.spent(9*time.Second) {
		t.Error("what was done before does not count")
	}
	for i, tt := range []struct {
		topology       string
		duration, gone time.Duration
		skipped        bool
	}{
		{"single", time.Hour, 0, false}, // the first one
		{"single", 10 * time.Second, 45 * time.Second, false},
		{"single", 10 * time.Second, 55 * time.Second, true},
		{"single", time.Second, 55 * time.Second, false}, // a shorter one has its place
		{"redlock", time.Hour, 0, false},
	} {
		c.Topology.Name = tt.topology
		first := b.begins(&c)
		if first {
			b.begin(&c, 0)
		}
		b.since = time.Now().Add(-tt.gone)
		if skipped := !first && b.spent(tt.duration); skipped != tt.skipped {
			t.Errorf("%d: %v of %v, after %v: %v", i, tt.duration, b.whole, tt.gone, skipped)
		}
	}
}

// TestAScenarioIsAPlan that leaves nothing of its own to the next one.
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
