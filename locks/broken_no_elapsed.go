package locks

import (
	"context"
	"crypto/rand"
	"time"

	"hammerlock/history"
)

var noElapsed = Spec{
	Name:   "no-elapsed",
	Doc:    "redlock that does not take off the time that the acquisition took",
	Source: "redlocks without step 3 of the algorithm",
	Sites:  ManySites,
	Broken: "the first sites' leases run while the last ones are asked: slow grants are over before they are believed to be",
	// Under delay it shows on a busy machine only: 22 runs with nothing beside them showed nothing.
	Expect: []Expectation{{Cause: history.OverClaim}},
	Claims: redlock.Claims,
	Open:   func(e Env) (Lock, error) { return &noElapsedLock{newRedlock(e)}, nil },
}

type noElapsedLock struct{ *redlockLock }

func (l *noElapsedLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease := Lease{Key: key, Token: rand.Text()}
	v := l.grant(ctx, lease, ttl)
	if v.ok < l.quorum {
		return lease, l.giveUp(ctx, lease, ttl, v)
	}
	lease.Until = until(time.Now(), ttl)
	return lease, nil
}
