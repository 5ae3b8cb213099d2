package harness

import (
	"fmt"
	"testing"
	"time"

	"hammerlock/faults"
	"hammerlock/internal/deployment"
	"hammerlock/internal/live"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// TestPhasesAreLaidOut: each phase becomes a stretch of the workload, with its own rate or that of the plan. A fault
// of a phase ends with the phase.
func TestPhasesAreLaidOut(t *testing.T) {
	const s = time.Second
	p := Default()
	p.Topologies, p.Workload.Rate, p.Workload.Workers = topologies.All[:1], 50, 4
	p.Phases = []Phase{
		{Kind: warmUp, Duration: 2 * s},
		{Kind: ramp, Duration: 4 * s, Rate: workload.Rate{First: 50, Last: 150}, Rated: true},
		{Kind: broken, Duration: 3 * s, Faults: []string{"stall-worker@1s", "pause-primary@500ms", "heal@2s"}},
		{Kind: burst, Duration: s, Burst: 30},
	}
	x := Combination{Topology: p.Topologies[0], Plan: p.phased()}
	got := &x.Plan
	if got.Warmup != 2*s || got.Duration != 8*s || got.Workload.Rate != 73 {
		t.Errorf("warm-up %s, duration %s, %v visits/s; want 2 s, 8 s and 73", got.Warmup, got.Duration,
			got.Workload.Rate)
	}
	for i, want := range []workload.Stretch{
		{To: 2 * s, Rate: workload.Rate{First: 50, Last: 50}},
		{From: 2 * s, To: 6 * s, Rate: workload.Rate{First: 50, Last: 150}},
		{From: 6 * s, To: 9 * s, Rate: workload.Rate{First: 50, Last: 50}},
		{From: 9 * s, To: 10 * s, Rate: workload.Rate{First: 50, Last: 50}, Burst: 30},
	} {
		if want.Workers = 4; got.Workload.Stretches[i] != want {
			t.Errorf("phase %d: got %+v, want %+v", i, got.Workload.Stretches[i], want)
		}
	}
	steps, mistakes := x.steps(faults.Scene{Can: topologies.Spec{}.Can(), Topology: "single", Sites: 1,
		Nodes: 1, Processes: 1})
	if len(mistakes) > 0 || len(steps) != 2 {
		t.Fatalf("steps %v, mistakes %v", steps, mistakes)
	}
	for i, want := range []struct{ from, to time.Duration }{{7 * s, 8 * s}, {6500 * time.Millisecond, 8 * s}} {
		if steps[i].From != want.from || steps[i].To != want.to {
			t.Errorf("%s from %s to %s, want %s to %s", steps[i], steps[i].From, steps[i].To, want.from, want.to)
		}
	}
	x.Plan.Phases[2].Faults = []string{"stall-worker@1s"}
	if steps, _ := x.steps(faults.Scene{Can: topologies.Spec{}.Can()}); len(steps) != 1 || steps[0].To != 9*s {
		t.Errorf("what nobody heals ends with its phase: got %+v", steps)
	}
	got.repeat(1)
	if got.Duration != 8*s {
		t.Errorf("another try takes %s, but phases say how long they are", got.Duration)
	}
}

// TestPhasesBesideEachOther checks errors in the combination of phases.
func TestPhasesBesideEachOther(t *testing.T) {
	rated := workload.Rate{First: 5, Last: 5}
	for want, phases := range map[string][]Phase{
		"phases steady: another phase has the same name: give it one of its own, as in name: steady-2": {
			{Kind: "steady", Duration: 1}, {Kind: "steady", Duration: 1},
		},
		"phases warm-up: a warm-up comes first, before what is measured": {
			{Kind: "steady", Duration: 1}, {Kind: warmUp, Duration: 1},
		},
		"phases warm-up: nothing is measured in a warm-up: add a phase": {
			{Kind: warmUp, Duration: 1},
		},
		"phases recovery: rate: it is missing, and others have one; or set the rate of the plan": {
			{Kind: "steady", Duration: 1, Rate: rated, Rated: true}, {Kind: recovery, Duration: 1},
		},
		"phases recovery: workers: in an open loop the rate is the load: leave it out": {
			{Kind: "steady", Duration: 1, Rate: rated, Rated: true}, {Kind: recovery, Duration: 1, Workers: 3},
		},
	} {
		p := Default()
		p.Phases = phases
		c := check{plan: &p}
		c.phases()
		if len(c.mistakes) != 1 || c.mistakes[0].Text != want {
			t.Errorf("got %q, want %q", c.mistakes, want)
		}
	}
}

// TestAloneCostsByPhase: the work of the servers in a phase is divided by the number of visits that ended in the
// phase. If the counters of the servers were read too late, the phase has no costs.
func TestAloneCostsByPhase(t *testing.T) {
	live.Again(t, func(int) string {
		j := job(t, func(p *Plan) {
			p.Workload.Workers = 1
			for _, name := range []string{"first", "second"} {
				p.Phases = append(p.Phases, Phase{Kind: "steady", Name: name, Duration: 700 * time.Millisecond,
					Rate: workload.Rate{First: 100, Last: 100}, Rated: true})
			}
		})
		r := run(t, j, nil)
		known := 0
		for _, name := range []string{"first", "second"} {
			c := &r.In(name).Cost
			if trips, commands, cpu := c.Texts(); c.Commands != nil {
				if known++; *c.Commands < 3 || *c.Commands > 6 || c.ServerCPU == nil || *c.ServerCPU <= 0 ||
					c.RoundTrips != nil {
					t.Errorf("a visit of phase %s costs %s round trips, %s commands and %s of CPU", name,
						trips, commands, cpu)
				}
			}
		}
		if known < 2 {
			return fmt.Sprintf("the costs of %d phases of 2 were read in time", known)
		}
		return ""
	})
}

// TestLateReadingsAreOfNoUse: a late reading makes the cost unknown, and one in time does not.
func TestLateReadingsAreOfNoUse(t *testing.T) {
	at := func(commands int64, late time.Duration) reading {
		return reading{deployment.Cost{Known: true, Commands: commands}, 0, late}
	}
	for _, tt := range []struct {
		first, last time.Duration
		known       bool
	}{{0, 0, true}, {30 * time.Millisecond, 30 * time.Millisecond, true}, {31 * time.Millisecond, 0, false},
		{0, 31 * time.Millisecond, false}} {
		if c := at(30, tt.last).since(at(10, tt.first), 300*time.Millisecond); c.Known != tt.known || c.Commands != 20 {
			t.Errorf("%+v: %+v", tt, c)
		}
	}
}
