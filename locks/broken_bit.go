package locks

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var bit = Spec{
	Name:   "bit",
	Doc:    "GETBIT, and SETBIT 1 if it was 0; SETBIT 0 to release",
	Source: "answers to \"how do I lock with Redis\": a flag",
	Sites:  OneSite,
	Broken: "reading and setting the flag are two steps: two workers see 0 and both set it; and it never expires",
	Expect: []Expectation{{Cause: history.DoubleGrant, Scenario: "contention"}},
	Claims: history.Claims{Excludes: true},
	Open:   func(e Env) (Lock, error) { return &bitLock{client: e.Sites[0], env: e}, nil },
}

type bitLock struct {
	unending
	client redis.UniversalClient
	env    Env
}

func (l *bitLock) Acquire(ctx context.Context, key string, _ time.Duration) (Lease, error) {
	lease := Lease{Key: key}
	set, err := l.client.GetBit(ctx, key, 0).Result()
	if err != nil {
		return lease, err
	}
	if set == 1 {
		return lease, ErrBusy
	}
	if err := l.env.between(ctx, key); err != nil {
		return lease, err
	}
	return lease, l.client.SetBit(ctx, key, 0, 1).Err()
}

func (l *bitLock) Release(ctx context.Context, lease Lease) error {
	return l.client.SetBit(ctx, lease.Key, 0, 0).Err()
}
