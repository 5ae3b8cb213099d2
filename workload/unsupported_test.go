package workload

import (
	"errors"
	"fmt"
	"testing"

	"hammerlock/history"
)

// TestALockThatCannotExtendHasDoneNothing: the error of Extend leaves no doubt. The same error from Acquire may be a
// network error.
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
