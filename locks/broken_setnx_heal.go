package locks

import (
	"context"
	"errors"
	"time"

	"hammerlock/history"
)

var setnxHeal = Spec{
	Name:   "setnx-heal",
	Doc:    "SETNX, then PEXPIRE; who is refused gives a lock without expiry one, so that a crash in between does no harm",
	Source: "Redis in Action 6.2.5, acquire_lock_with_timeout; redis-py issue 818",
	Sites:  OneSite,
	Broken: "a holder that is slow between its commands, not dead, loses the lock meanwhile, lengthens its successor's and believes in it",
	Expect: []Expectation{{Cause: history.DoubleGrant}, {Cause: history.OverClaim}},
	Claims: lease.Claims,
	Open:   func(e Env) (Lock, error) { return &setnxHealLock{setnxExpireLock{leaseLock{e.Sites[0]}, e}}, nil },
}

type setnxHealLock struct{ setnxExpireLock }

func (l *setnxHealLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease, err := l.inTwoSteps(ctx, key, ttl)
	if !errors.Is(err, ErrBusy) {
		return lease, err
	}
	if left, why := l.client.PTTL(ctx, key).Result(); why != nil || left != -1 {
		return lease, err
	}
	l.client.PExpire(ctx, key, ttl) // if it fails the next one does it
	return lease, err
}
