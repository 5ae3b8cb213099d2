package locks

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var setnx = Spec{
	Name:   "setnx",
	Doc:    "SETNX to take it, DEL to give it back, no expiry",
	Source: "redis.io, SETNX, before 2.6.12; most first articles on the subject",
	Sites:  OneSite,
	Broken: "never expires: when its holder dies no worker gets the lock again",
	Expect: []Expectation{{Cause: history.Deadlock, Scenario: "crash"}},
	Claims: history.Claims{Excludes: true, Owned: true, Cleans: true},
	Open:   func(e Env) (Lock, error) { return &setnxLock{client: e.Sites[0]}, nil },
}

type setnxLock struct {
	unending
	client redis.UniversalClient
}

func (l *setnxLock) Acquire(ctx context.Context, key string, _ time.Duration) (Lease, error) {
	lease := Lease{Key: key, Token: rand.Text()}
	return lease, setNX(ctx, l.client, key, lease.Token, 0)
}

func (l *setnxLock) Release(ctx context.Context, lease Lease) error {
	return deleteAny(ctx, l.client, lease.Key)
}

// deleteAny deletes the key, whoever holds the lock.
func deleteAny(ctx context.Context, c redis.Cmdable, key string) error {
	return owned(c.Del(ctx, key).Result())
}
