package locks

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var clearedTTL = Spec{
	Name:   "cleared-ttl",
	Doc:    "GETSET: who finds nothing there has the lock and sets its expiry; DEL to release",
	Source: "redis-semaphore (Ruby) issue 23, simple_mutex",
	Sites:  OneSite,
	Broken: "GETSET clears the expiry, also if the caller is refused: a holder that dies after that is never replaced",
	Expect: []Expectation{{Cause: history.Phantom}, {Cause: history.Leak}, {Cause: history.Deadlock}},
	Claims: history.Claims{Excludes: true, Expires: true, Cleans: true},
	Open:   func(e Env) (Lock, error) { return &clearedTTLLock{blindLock{leaseLock{e.Sites[0]}}}, nil },
}

type clearedTTLLock struct{ blindLock }

func (l *clearedTTLLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease := Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	err := l.client.SetArgs(ctx, key, lease.Token, redis.SetArgs{Get: true}).Err()
	if err == nil {
		return lease, ErrBusy
	}
	if !errors.Is(err, redis.Nil) {
		return lease, err
	}
	err = AfterGrant(l.client.PExpire(ctx, key, ttl).Err())
	return lease.from(call, ttl, err)
}

func (l *clearedTTLLock) Release(ctx context.Context, lease Lease) error {
	return deleteAny(ctx, l.client, lease.Key)
}
