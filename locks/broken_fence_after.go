package locks

import (
	"context"
	"time"

	"hammerlock/history"
)

var fenceAfter = Spec{
	Name:   "fence-after",
	Doc:    "lease, with a fencing token drawn by INCR as a second command",
	Source: "locks to which fencing was added from outside",
	Sites:  OneSite,
	Broken: "who is slow between the two commands draws a greater token than the one who got the lock after it",
	Expect: []Expectation{{Cause: history.Regressed, Scenario: "slow-fence"}},
	Claims: fenced.Claims,
	Open:   func(e Env) (Lock, error) { return &fenceAfterLock{leaseLock{e.Sites[0]}, e}, nil },
}

type fenceAfterLock struct {
	leaseLock
	env Env
}

func (l *fenceAfterLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease, err := l.leaseLock.Acquire(ctx, key, ttl)
	if err != nil {
		return lease, err
	}
	if err := l.env.between(ctx, key); err != nil {
		return lease, err
	}
	if lease.Fence, err = l.client.Incr(ctx, fenceKey(key)).Result(); err != nil {
		return lease, AfterGrant(err)
	}
	return lease, nil
}
