package harness

import (
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/results"
)

// TestWhatAVisitMayCost: tries in vain are the waiters' right, as many as their backoff allows; a storm is not.
func TestWhatAVisitMayCost(t *testing.T) {
	spent := func(commands float64) *float64 { return &commands }
	for name, tt := range map[string]struct {
		commands *float64
		visits   int64
		nodes    int
		want     checker.Status
	}{
		"a lease":                   {spent(4 + 9), 30, 1, checker.Pass},
		"a queue and its messages":  {spent(60), 30, 1, checker.Pass},
		"five sites":                {spent(600), 30, 5, checker.Pass},
		"a storm":                   {spent(600), 30, 1, checker.Fail},
		"slow visits, many tries":   {spent(600), 4, 1, checker.Pass},
		"servers that do not tell":  {nil, 30, 1, checker.Inconclusive},
		"nobody who came to an end": {spent(0), 0, 1, checker.Inconclusive},
	} {
		run := &results.Run{Cost: results.Cost{Commands: tt.commands}}
		run.Workers, run.Duration, run.Retry = 4, int64(2*time.Second), int64(20*time.Millisecond)
		run.Visits.Done = tt.visits
		if v := weighCost(run, tt.nodes); v.Status != tt.want || (v.Cause == "storm") != (tt.want == checker.Fail) {
			t.Errorf("%s: got %s %q: %s, want %s", name, v.Status, v.Cause, v.Summary, tt.want)
		}
	}
}
