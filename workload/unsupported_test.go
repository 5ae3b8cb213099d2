package workload

import (
	"errors"
	"fmt"
	"testing"

	"hammerlock/history"
)

// TestALockThatCannotExtendHasDoneNothing: errors.ErrUnsupported from Extend means that nothing was changed. From
// Acquire, it may be a network error, so the outcome is unknown.
func TestALockThatCannotExtendHasDoneNothing(t *testing.T) {
	w := &worker{group: &Workers{}}
	err := fmt.Errorf("mine: %w", errors.ErrUnsupported)
	if o, r := w.answered(history.Extend, err); o != history.Failed || r != history.Other {
		t.Errorf("an extension: got %v, %v", o, r)
	}
	if o, _ := w.answered(history.Acquire, err); o != history.Unknown {
		t.Errorf("an acquire: got %v", o)
	}
}
