package explore

import (
	"strings"
	"testing"

	"hammerlock/checker"
	"hammerlock/locks"
)

// TestRenewalsThatAreNotRecorded: a right lock that renews, and does not record it, is not accused.
func TestRenewalsThatAreNotRecorded(t *testing.T) {
	spec := find(t, "watchdog")
	open := spec.Open
	spec.Open = func(e locks.Env) (locks.Lock, error) {
		e.Renewals = nil
		return open(e)
	}
	r := run(t, spec, bounded(1))
	if r.Status != checker.Inconclusive || !r.Excluded || !strings.Contains(r.Verdict(), "Env.Renewals") {
		t.Errorf("got %v: %s", r.Status, r.Verdict())
	}
}
