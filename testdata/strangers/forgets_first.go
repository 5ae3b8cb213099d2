package catalogue

import (
	"context"
	"errors"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// redis/redis-py issue 3847, redis.asyncio.Lock: a release forgets the token before it sends it. If it is cancelled, or
// fails, a second release finds no token and says that the lock is not owned.
var forgetsFirst = locks.Spec{
	Name: "forgets-first", Doc: "lease whose object keeps the token, and forgets it before the release is sent",
	Source: "redis-py issue 3847",
	Sites:  locks.OneSite, Broken: "after a release that was cancelled the holder can give nothing back and is told " +
		"that the lock is not its own",
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true},
	Open: func(e locks.Env) (locks.Lock, error) {
		return &forgetsLock{leaseLock{e.Sites[0]}, map[string]string{}}, nil
	},
}

type forgetsLock struct {
	leaseLock
	tokens map[string]string // by key
}

func (l *forgetsLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := l.leaseLock.Acquire(ctx, key, ttl)
	if !errors.Is(err, locks.ErrBusy) {
		l.tokens[key] = lease.Token
	}
	return lease, err
}

func (l *forgetsLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	if l.tokens[lease.Key] != lease.Token {
		return lease, locks.ErrLost
	}
	return l.leaseLock.Extend(ctx, lease, ttl)
}

func (l *forgetsLock) Release(ctx context.Context, lease locks.Lease) error {
	if l.tokens[lease.Key] != lease.Token {
		return locks.ErrLost
	}
	delete(l.tokens, lease.Key)
	return l.leaseLock.Release(ctx, lease)
}
