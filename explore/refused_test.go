package explore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// keeping is a lock on several sites that leaves the keys of a refused try.
type keeping struct {
	locks.Lock
	env locks.Env
}

func (l keeping) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := l.Lock.Acquire(ctx, key, ttl)
	var none locks.NoQuorum
	if !errors.As(err, &none) {
		return lease, err
	}
	l.env.Sites[0].SetNX(ctx, key, lease.Token, ttl)
	return lease, locks.ErrBusy
}

// TestTheGuiltyTryIsShown: a refused try that left a key is shown with its commands, not counted with the others.
func TestTheGuiltyTryIsShown(t *testing.T) {
	spec := find(t, "redlock")
	open := spec.Open
	spec.Open = func(e locks.Env) (locks.Lock, error) {
		l, err := open(e)
		return keeping{l, e}, err
	}
	o := bounded(1)
	o.Sites, o.Visits = 3, 1
	r := run(t, spec, o)
	if r.Found == nil || r.Found.Cause != history.Phantom {
		t.Fatalf("got %v: %s, want a phantom", r.Status, r.Verdict())
	}
	if !strings.Contains(r.Found.Text(), "is refused: busy") {
		t.Errorf("the guilty try is not shown:\n%s", r.Found.Text())
	}
}
