package explore

import (
	"context"
	"errors"
	"testing"

	"hammerlock/locks"
)

// insistent is a lock that sends its release again when it has no answer.
type insistent struct{ locks.Lock }

func (l insistent) Release(ctx context.Context, lease locks.Lease) error {
	err := l.Lock.Release(ctx, lease)
	if err != nil && !errors.Is(err, locks.ErrLost) {
		err = l.Lock.Release(ctx, lease)
	}
	return err
}

// TestAReleaseThatIsSentAgain: the first release had its effect, and its answer was lost. The second one says, after
// the lease would have been over, that the lock was not held. So the lock may have been free all the time.
func TestAReleaseThatIsSentAgain(t *testing.T) {
	spec := find(t, "lease")
	open := spec.Open
	spec.Open = func(e locks.Env) (locks.Lock, error) {
		l, err := open(e)
		return insistent{l}, err
	}
	if f := run(t, spec, bounded(1)).Found; f != nil {
		t.Errorf("%s: %s", f.Cause, f.Summary)
	}
}
