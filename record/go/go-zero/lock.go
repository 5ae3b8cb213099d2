package main

import (
	"context"
	"errors"
	"time"

	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stores/redis"
)

// hello describes the lock. The library counts leases in whole seconds and adds half a second. Its clients use no
// database number and no user name.
func hello(bool) map[string]any {
	h := greeting("go-zero", "github.com/zeromicro/go-zero", []string{"single"}, "excludes", "expires", "owned",
		"cleans", "defaults")
	h["lingers_ms"] = 999
	return h
}

var store *redis.Redis

func open(_ context.Context, sites []site) error {
	logx.Disable()
	store = redis.New(sites[0].addr(), redis.WithPass(sites[0].Password))
	return nil
}

type lock struct {
	held  *redis.RedisLock
	tried time.Time
}

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

var errRepeated = errors.New("refused, but the client may have repeated the release: " +
	"the first one may have had its effect")

// release releases the lock. If an answer was lost, the library's client repeats the command up to three times, and
// no option forbids this. A repeated release is refused. The client waits for 8 ms or more before it repeats, so
// only a refusal within 8 ms is certain. A repeated acquire does no harm.
func (l *lock) release(ctx context.Context) error {
	refused := errRepeated
	began := time.Now()
	ok, err := l.held.ReleaseCtx(ctx)
	if time.Since(began) < 8*time.Millisecond {
		refused = errLost
	}
	return sure(refused)(ok, err)
}

// sure returns the error no if the library refused, but passes on any other error.
func sure(no error) func(bool, error) error {
	return func(ok bool, err error) error {
		if err == nil && !ok {
			return no
		}
		return err
	}
}
