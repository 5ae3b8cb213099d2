package locks

import (
	"context"
	"time"

	"hammerlock/history"
)

var wakesItself = Spec{
	Name:   "wakes-itself",
	Doc:    "lease whose release publishes a message; a try in vain is taken back like a hold, and publishes one as well",
	Source: "github.com/redis/rueidis/rueidislock, README, NoLoopTracking: clients that hear of their own changes",
	Sites:  OneSite,
	Broken: "each try in vain wakes those who wait, who try in vain: waiters keep each other busy, and the server, as long as the lock is held",
	Expect: []Expectation{{Cause: history.Storm, Scenario: "cost"}},
	Claims: lease.Claims,
	Open: func(e Env) (Lock, error) {
		return &wakesItselfLock{openNotifying(e, func(ctx context.Context, l *notifyingLock) (time.Duration, history.Wake, error) {
			left, err := l.leaseLock.client.PTTL(ctx, l.key).Result()
			return left, history.LeaseEnd, err
		})}, nil
	},
}

type wakesItselfLock struct{ *notifyingLock }

func (l *wakesItselfLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease, err := l.notifyingLock.Acquire(ctx, key, ttl)
	if err == ErrBusy {
		_ = l.leaseLock.client.Publish(ctx, sibling("released", key), "0").Err() // nobody relies on it
	}
	return lease, err
}
