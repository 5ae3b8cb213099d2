package main

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stores/redis"
)

// hello says what the lock is and claims.
func hello(bool) map[string]any {
	return map[string]any{
		"hello": "hammerlock-driver", "protocol": 1, "name": "go-zero", "version": version("github.com/zeromicro/go-zero"),
		"claims": []string{"excludes", "expires", "owned", "cleans"}, "topologies": []string{"single"},
	}
}

var store *redis.Redis

func open(_ context.Context, sites []site) (err error) {
	logx.Disable()
	s := sites[0]
	store, err = redis.NewRedis(redis.RedisConf{Host: net.JoinHostPort(s.Host, strconv.Itoa(s.Port)), User: s.User, Pass: s.Password, Type: redis.NodeType})
	return err
}

// lock is a hold.
type lock struct {
	held  *redis.RedisLock
	tried time.Time
}

// acquire makes one try. The library counts leases in whole seconds, and adds half of one.
func acquire(ctx context.Context, key string, ttl, _ time.Duration, _ func(error)) (*lock, error) {
	l := &lock{held: redis.NewRedisLock(store, key)}
	l.expire(ttl)
	ok, err := l.held.AcquireCtx(ctx)
	if err == nil && !ok {
		err = errBusy
	}
	return l, err
}

func (l *lock) expire(ttl time.Duration) {
	l.held.SetExpire(int((ttl + 499*time.Millisecond) / time.Second))
}

func (l *lock) token() string { return "" }

func (l *lock) extend(ctx context.Context, ttl time.Duration) error {
	l.expire(ttl)
	ok, err := l.held.AcquireCtx(ctx)
	if err == nil && !ok {
		err = errLost
	}
	return err
}

func (l *lock) release(ctx context.Context) error {
	ok, err := l.held.ReleaseCtx(ctx)
	if err == nil && !ok {
		err = errLost
	}
	return err
}
