package harness

import (
	"testing"
	"time"

	"hammerlock/scenarios"
)

// TestACutLastsLongerThanALease: a fault that catches a holder waits for a grant. If all holds of a scenario have the
// same length, the next grant comes when the fault is to be healed, and nothing breaks.
func TestACutLastsLongerThanALease(t *testing.T) {
	if testing.Short() {
		t.Skip("eight seconds")
	}
	t.Parallel()
	r := run(t, job(t, func(p *Plan) {
		cut, _ := scenarios.Find("renewal-cut")
		p.Verify, p.Locks, p.Scenarios = true, lockNamed("watchdog"), []scenarios.Scenario{cut}
	}), nil)
	var longest time.Duration
	for _, w := range r.Windows {
		longest = max(longest, w.Healing-w.Injected)
	}
	if longest < scenarios.Renewed {
		t.Errorf("the longest cut lasted %v, less than a lease: %+v", longest, r.Windows)
	}
}
