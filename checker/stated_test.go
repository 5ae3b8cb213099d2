package checker

import (
	"testing"

	"hammerlock/history"
)

// TestALockThatEndsItsRunFails with the last operation before as evidence.
func TestALockThatEndsItsRunFails(t *testing.T) {
	v := Ended("calls", "panic", []string{"it panics", "at a line"}, []history.Op{{Worker: 1}, {Worker: 2}})
	if v.Status != Fail || v.Summary != "it panics" || v.Violations != 1 || len(v.Evidence) != 1 || v.Evidence[0].Worker != 2 {
		t.Errorf("got %+v", v)
	}
	if v := Ended("calls", "panic", []string{"it panics"}, nil); v.Evidence != nil {
		t.Errorf("evidence without an operation: %+v", v.Evidence)
	}
}
