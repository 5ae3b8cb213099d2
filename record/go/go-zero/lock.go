package main

import (
	"context"
	"time"

	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stores/redis"
)

// hello: the library counts leases in whole seconds, and adds half of one.
func hello(bool) map[string]any {
	h := greeting("go-zero", "github.com/zeromicro/go-zero", []string{"single"}, "excludes", "expires", "owned", "cleans")
	h["lingers_ms"] = 999
	return h
}

var store *redis.Redis

func open(_ context.Context, sites []site) error {
	logx.Disable()
	store = redis.New(sites[0].addr(), redis.WithPass(sites[0].Password))
	return nil
}

// lock is a hold.
type lock struct {
	held  *redis.RedisLock
	tried time.Time
}

// acquire makes one try.
func acquire(ctx context.Context, key string, ttl, _ time.Duration) (*lock, error) {
	l := &lock{held: redis.NewRedisLock(store, key)}
	return l, l.take(ctx, ttl, errBusy)
}

func (l *lock) take(ctx context.Context, ttl time.Duration, refused error) error {
	l.held.SetExpire(int((ttl + 499*time.Millisecond) / time.Second))
	return sure(refused)(l.held.AcquireCtx(ctx))
}

func (l *lock) token() string { return "" }

func (l *lock) extend(ctx context.Context, ttl time.Duration) error { return l.take(ctx, ttl, errLost) }

func (l *lock) release(ctx context.Context) error { return sure(errLost)(l.held.ReleaseCtx(ctx)) }

// sure says no where the library does, unless it has met an error.
func sure(no error) func(bool, error) error {
	return func(ok bool, err error) error {
		if err == nil && !ok {
			return no
		}
		return err
	}
}
