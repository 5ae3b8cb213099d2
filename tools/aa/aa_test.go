package main

import (
	"testing"
	"time"

	"hammerlock/internal/harness"
)

// unhurried leaves the cores to other tests; what a visit costs is seen all the same.
func unhurried(p *harness.Plan) {
	load(p)
	p.Workload.Think = 3 * time.Millisecond
}

// TestAThingIsComparedWithItself makes one real comparison. Whether there are false alarms shows after many only: make
// aa.
func TestAThingIsComparedWithItself(t *testing.T) {
	t.Parallel()
	trial, table, err := itself(t.Context(), 1, unhurried)
	if err != nil {
		t.Error(err)
	}
	t.Logf("ab %v, compare %v", trial, table)
}

func TestARealDifferenceIsFound(t *testing.T) {
	t.Parallel()
	if err := oneMoreTrip(unhurried).find(t.Context()); err != nil {
		t.Error(err)
	}
}
