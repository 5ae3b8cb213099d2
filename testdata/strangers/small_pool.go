package catalogue

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

// bungle/lua-resty-session issue 185: who waits for the lock keeps a connection of the pool for as long as it waits.
// When waiters have them all, the holder gets none to release with.
var smallPool = locks.Spec{
	Name: "small-pool", Doc: "lease, waited for by polling on a connection that is taken from a pool of two " +
		"and kept while waiting",
	Source: "lua-resty-session issue 185", Sites: locks.OneSite, Broken: "two waiters keep the holder of their " +
		"process from its release",
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true},
	Waits:  true,
	Open: func(e locks.Env) (locks.Lock, error) {
		key := connectionsKey{e.Sites[0]}
		pool, err := locks.Share(e.Process, key, func() (connections, error) { return make(connections, 2), nil })
		return &smallPoolLock{leaseLock{e.Sites[0]}, pool, func() error { return e.Process.Drop(key) }}, err
	},
}

// connections are those that somebody has taken from the pool.
type connections chan struct{}

type connectionsKey struct{ client redis.UniversalClient }

func (c connections) Close() error { return nil }

// take waits for a free connection. Nothing was sent if there was none.
func (c connections) take(ctx context.Context) error {
	select {
	case c <- struct{}{}:
		return nil
	case <-ctx.Done():
		return redis.ErrPoolTimeout
	}
}

func (c connections) give() { <-c }

type smallPoolLock struct {
	leaseLock
	pool connections
	drop func() error
}

func (l *smallPoolLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	if err := l.pool.take(ctx); err != nil {
		return locks.Lease{Key: key}, err
	}
	defer l.pool.give()
	return l.leaseLock.Acquire(ctx, key, ttl)
}

// pollEvery is the time between two tries on the connection that is kept.
const pollEvery = 5 * time.Millisecond

func (l *smallPoolLock) AcquireWithin(ctx context.Context, key string, ttl, wait time.Duration) (locks.Lease, error) {
	begun := time.Now()
	patience, cancel := context.WithTimeout(ctx, max(wait, pollEvery))
	defer cancel()
	if err := l.pool.take(patience); err != nil {
		return locks.Lease{Key: key}, err
	}
	defer l.pool.give()
	for {
		tried := time.Since(begun)
		lease, err := l.leaseLock.Acquire(ctx, key, ttl)
		lease.Tried = tried
		if !errors.Is(err, locks.ErrBusy) || time.Since(begun) >= wait || pause(patience, pollEvery) != nil {
			return lease, err
		}
	}
}

func (l *smallPoolLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	if err := l.pool.take(ctx); err != nil {
		return lease, err
	}
	defer l.pool.give()
	return l.leaseLock.Extend(ctx, lease, ttl)
}

func (l *smallPoolLock) Release(ctx context.Context, lease locks.Lease) error {
	if err := l.pool.take(ctx); err != nil {
		return err
	}
	defer l.pool.give()
	return l.leaseLock.Release(ctx, lease)
}

func (l *smallPoolLock) Close() error { return l.drop() }
