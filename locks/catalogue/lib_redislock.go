package catalogue

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"

	"hammerlock/locks"
)

var libRedislock = locks.Spec{
	Name:    "redislock",
	Doc:     "bsm/redislock with its defaults; it names no deadline, so its user counts the lease from the call",
	Source:  "github.com/bsm/redislock v0.9.4",
	Library: true,
	Sites:   locks.OneSite,
	Assumes: keepsKeys + doneInTime,
	Claims:  lease.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &redislockLock{client: redislock.New(e.Sites[0]), held: map[string]*redislock.Lock{}}, nil
	},
}

type redislockLock struct {
	client *redislock.Client
	held   map[string]*redislock.Lock // by token
}

// Acquire returns no token if it fails, because the library does not tell which token it has sent.
func (l *redislockLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return l.obtain(ctx, key, ttl, nil)
}

func (l *redislockLock) obtain(ctx context.Context, key string, ttl time.Duration, o *redislock.Options) (locks.Lease,
	error) {
	lease := locks.Lease{Key: key}
	call := time.Now()
	held, err := l.client.Obtain(ctx, key, ttl, o)
	if errors.Is(err, redislock.ErrNotObtained) {
		return lease, locks.ErrBusy
	}
	if err != nil {
		return lease, err
	}
	lease.Token, lease.Until = held.Token(), locks.Until(call, ttl)
	l.held[lease.Token] = held
	return lease, nil
}

func (l *redislockLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	held, ok := l.held[lease.Token]
	if !ok {
		return lease, locks.ErrLost
	}
	call := time.Now()
	err := held.Refresh(ctx, ttl, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		err = locks.ErrLost
	}
	return from(lease, call, ttl, err)
}

func (l *redislockLock) Release(ctx context.Context, lease locks.Lease) error {
	held, ok := l.held[lease.Token]
	if !ok {
		return locks.ErrLost
	}
	delete(l.held, lease.Token)
	err := held.Release(ctx)
	if errors.Is(err, redislock.ErrLockNotHeld) {
		return locks.ErrLost
	}
	return err
}

func (l *redislockLock) Close() error { return nil }
