package faults

import "testing"

// TestAServerThatSyncsEachWriteLosesNothing: a grant that it has forgotten is then no fault's.
func TestAServerThatSyncsEachWriteLosesNothing(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		if e := powerLoss.Effect(Scene{Keeps: keeps}); e.BreaksPromises() == keeps {
			t.Errorf("keeps %v: %+v", keeps, e)
		}
	}
}
