package catalogue

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

// bluele/redis-semaphore issue 2: whoever opens the semaphore makes its list anew, with all tokens in it.
var initResets = locks.Spec{
	Name: "init-resets", Doc: "a list with one token that a holder pops; the first use of an object fills it",
	Source: "bluele/redis-semaphore issue 2", Sites: locks.OneSite,
	Broken: "who comes later puts the token back that somebody holds",
	Claims: history.Claims{Excludes: true},
	Open: func(e locks.Env) (locks.Lock, error) {
		return &initLock{client: e.Sites[0], filled: map[string]bool{}}, nil
	},
}

type initLock struct {
	client redis.UniversalClient
	filled map[string]bool
}

func (l *initLock) Acquire(ctx context.Context, key string, _ time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: "token"}
	if !l.filled[key] {
		if _, err := l.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Del(ctx, key)
			p.RPush(ctx, key, lease.Token)
			return nil
		}); err != nil {
			return lease, locks.AfterGrant(err)
		}
		l.filled[key] = true
	}
	err := l.client.LPop(ctx, key).Err()
	if err == redis.Nil {
		return lease, locks.ErrBusy
	}
	return lease, err
}

func (l *initLock) Extend(_ context.Context, lease locks.Lease, _ time.Duration) (locks.Lease, error) {
	return lease, nil
}

func (l *initLock) Release(ctx context.Context, lease locks.Lease) error {
	return l.client.RPush(ctx, lease.Key, lease.Token).Err()
}

func (l *initLock) Close() error { return nil }
