package locks

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var extendOverwrites = Spec{
	Name:   "extend-overwrites",
	Doc:    "lease, extended by SET XX PX: the key must be there",
	Source: "ShedLock pull requests 2584 and 2593, its Redis providers until then",
	Sites:  OneSite,
	Broken: "that the key is there does not say whose it is: an extension that comes late takes the lock from its new holder",
	Expect: []Expectation{{Cause: history.SilentReacquire}, {Cause: history.DoubleGrant}},
	Claims: lease.Claims,
	Open:   func(e Env) (Lock, error) { return &overwriteLock{leaseLock{e.Sites[0]}}, nil },
}

type overwriteLock struct{ leaseLock }

func (l *overwriteLock) Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	call := time.Now()
	err := l.client.SetArgs(ctx, lease.Key, lease.Token, redis.SetArgs{Mode: "XX", TTL: ttl}).Err()
	if errors.Is(err, redis.Nil) {
		err = ErrLost
	}
	return lease.from(call, ttl, err)
}
