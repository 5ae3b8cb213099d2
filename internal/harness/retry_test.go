package harness

import (
	"slices"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/measure"
	"hammerlock/results"
)

// TestEachTryIsLonger: each try has the next seed and the length of its policy. The original plan does not change.
func TestEachTryIsLonger(t *testing.T) {
	for name, tt := range map[string]struct {
		policy Again
		want   []time.Duration
	}{
		"none":         {nil, nil},
		"next seed":    {NextSeed, []time.Duration{1, 1, 1, 1}},
		"doubling":     {Doubling, []time.Duration{1, 2, 4, 8}},
		"sixteen":      {Sixteen, []time.Duration{1, 4, 16}},
		"runs of jobs": {(&Plan{Attempts: 3}).again(), []time.Duration{1, 3, 6}},
	} {
		var got []time.Duration
		p := Plan{Duration: 1}
		for try := range tt.policy.Of(p) {
			if got = append(got, try.Duration); try.Workload.Seed != uint64(len(got)-1) {
				t.Errorf("%s: try %d has seed %d", name, len(got), try.Workload.Seed)
			}
		}
		if !slices.Equal(got, tt.want) || p.Duration != 1 || p.Workload.Seed != 0 {
			t.Errorf("%s: got %v, want %v; the plan is %v", name, got, tt.want, p.Duration)
		}
	}
}

// TestALostAgentIsNoReasonToRepeat: a run that lost an agent is not repeated, because the repetition would wait for
// the agent. If the agents are on this machine, it is repeated, because they are started again.
func TestALostAgentIsNoReasonToRepeat(t *testing.T) {
	for name, tt := range map[string]struct {
		missing, local bool
		want           int
	}{
		"a server failed":                {false, false, 1},
		"an agent was lost":              {true, false, 0},
		"an agent on this machine ended": {true, true, 1},
	} {
		p := Plan{Verify: true, Fleet: Fleet{Local: tt.local}}
		x := &Run{combo: Combination{Topology: on("single")[0], Plan: p}, incidents: []string{"it ended"},
			missing: tt.missing, run: &results.Run{Verdicts: []checker.Verdict{{}}},
			meter: measure.NewMeter(measure.Options{})}
		if got := x.howMuchLonger(); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}
