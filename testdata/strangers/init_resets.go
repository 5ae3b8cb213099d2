package locks

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

// bluele/redis-semaphore issue 2: whoever opens the semaphore makes its list anew, with all tokens in it.
var initResets = Spec{
	Name: "init-resets", Doc: "a list with one token that a holder pops; the first use of an object fills it", Source: "bluele/redis-semaphore issue 2", Sites: OneSite,
	Broken: "who comes later puts the token back that somebody holds",
	Claims: history.Claims{Excludes: true},
	Open:   func(e Env) (Lock, error) { return &initLock{client: e.Sites[0], filled: map[string]bool{}}, nil },
}

type initLock struct {
	client redis.UniversalClient
	filled map[string]bool
}

func (l *initLock) Acquire(ctx context.Context, key string, _ time.Duration) (Lease, error) {
	lease := Lease{Key: key, Token: "token"}
	if !l.filled[key] {
		if _, err := l.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Del(ctx, key)
			p.RPush(ctx, key, lease.Token)
			return nil
		}); err != nil {
			return lease, AfterGrant(err)
		}
		l.filled[key] = true
	}
	err := l.client.LPop(ctx, key).Err()
	if err == redis.Nil {
		return lease, ErrBusy
	}
	return lease, err
}

func (l *initLock) Extend(_ context.Context, lease Lease, _ time.Duration) (Lease, error) {
	return lease, nil
}

func (l *initLock) Release(ctx context.Context, lease Lease) error {
	return l.client.RPush(ctx, lease.Key, lease.Token).Err()
}

func (l *initLock) Close() error { return nil }
