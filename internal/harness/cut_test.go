package harness

import (
	"testing"
	"time"

	"hammerlock/scenarios"
)

// TestACutLastsLongerThanALease: the fault cuts the network of a holder until its lease has ended, and begins at a
// grant. If all holds had the same length, the next grant could come only when the fault is about to be healed.
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
