package locks

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"hammerlock/history"
)

var reachedQuorum = Spec{
	Name:   "reached-quorum",
	Doc:    "redlock with a majority of the sites that it reaches, so that some may be down",
	Source: "redlock-py pull request 6, a quorum of its connection_list",
	Sites:  ManySites,
	Broken: "a majority of those that one client reaches need not meet that of another: one site is enough when it is alone",
	Expect: []Expectation{{Cause: history.DoubleGrant}},
	Claims: redlock.Claims,
	Open:   func(e Env) (Lock, error) { return &reachedLock{newRedlock(e)}, nil },
}

type reachedLock struct{ *redlockLock }

func (l *reachedLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease := Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	v := l.grant(ctx, lease, ttl)
	reached := v.ok
	for _, err := range v.refusals {
		if errors.Is(err, ErrBusy) {
			reached++
		}
	}
	end := until(call, ttl)
	if v.ok >= reached/2+1 && time.Now().Before(end) {
		lease.Until = end
		return lease, nil
	}
	return lease, l.giveUp(ctx, lease, ttl, v)
}
