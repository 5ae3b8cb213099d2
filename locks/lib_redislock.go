package locks

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
)

var libRedislock = Spec{
	Name:    "redislock",
	Doc:     "bsm/redislock with its defaults; it names no deadline, so its user counts the lease from the call",
	Source:  "github.com/bsm/redislock v0.9.4",
	Library: true,
	Sites:   OneSite,
	Assumes: keepsKeys + doneInTime,
	Claims:  lease.Claims,
	Open: func(e Env) (Lock, error) {
		return &redislockLock{client: redislock.New(e.Sites[0]), held: map[string]*redislock.Lock{}}, nil
	},
}

type redislockLock struct {
	client *redislock.Client
	held   map[string]*redislock.Lock // by token
}

// Acquire returns no token with an error: the library does not say which one it sent.
func (l *redislockLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	return l.obtain(ctx, key, ttl, nil)
}

func (l *redislockLock) obtain(ctx context.Context, key string, ttl time.Duration, o *redislock.Options) (Lease, error) {
	lease := Lease{Key: key}
	call := time.Now()
	held, err := l.client.Obtain(ctx, key, ttl, o)
	if errors.Is(err, redislock.ErrNotObtained) {
		return lease, ErrBusy
	}
	if err != nil {
		return lease, err
	}
	lease.Token, lease.Until = held.Token(), until(call, ttl)
	l.held[lease.Token] = held
	return lease, nil
}

func (l *redislockLock) Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	held, ok := l.held[lease.Token]
	if !ok {
		return lease, ErrLost
	}
	call := time.Now()
	err := held.Refresh(ctx, ttl, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		err = ErrLost
	}
	return lease.from(call, ttl, err)
}

func (l *redislockLock) Release(ctx context.Context, lease Lease) error {
	held, ok := l.held[lease.Token]
	if !ok {
		return ErrLost
	}
	delete(l.held, lease.Token)
	err := held.Release(ctx)
	if errors.Is(err, redislock.ErrLockNotHeld) {
		return ErrLost
	}
	return err
}

func (l *redislockLock) Close() error { return nil }
