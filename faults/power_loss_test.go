package faults

import "testing"

// TestAServerThatSyncsEachWriteLosesNothing: a forgotten grant is then not caused by the fault.
func TestAServerThatSyncsEachWriteLosesNothing(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		if e := powerLoss.Effect(Scene{Keeps: keeps}); e.BreaksPromises() == keeps {
			t.Errorf("keeps %v: %+v", keeps, e)
		}
	}
}
