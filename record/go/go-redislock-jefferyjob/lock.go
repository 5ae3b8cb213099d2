package main

import (
	"context"
	"errors"
	"time"

	redislock "github.com/jefferyjob/go-redislock"
	adapter "github.com/jefferyjob/go-redislock/adapter/go-redis/V9"
	"github.com/redis/go-redis/v9"
)

func hello(bool) map[string]any {
	return greeting("go-redislock-jefferyjob", "github.com/jefferyjob/go-redislock", []string{"single"}, "excludes", "expires", "owned", "cleans")
}

var client redislock.RedisInter

func open(_ context.Context, sites []site) error {
	s := sites[0]
	client = adapter.New(redis.NewClient(&redis.Options{
		Addr: s.addr(), Username: s.User, Password: s.Password, DB: s.DB, MaxRetries: -1, PoolSize: 1000, ReadTimeout: time.Second, DialTimeout: time.Second,
	}))
	return nil
}

type lock struct {
	redislock.RedisLockInter
	tried time.Time
}

func acquire(ctx context.Context, key string, ttl, _ time.Duration) (*lock, error) {
	l := &lock{RedisLockInter: redislock.New(client, key, redislock.WithTimeout(ttl))}
	return l, certain(l.Lock(ctx), redislock.ErrLockFailed, errBusy)
}

func (l *lock) token() string { return "" }

func (l *lock) extend(ctx context.Context, _ time.Duration) error {
	return certain(l.Renew(ctx), redislock.ErrLockRenewFailed, errLost)
}

func (l *lock) release(ctx context.Context) error {
	return certain(l.UnLock(ctx), redislock.ErrUnLockFailed, errLost)
}

func certain(err, as, no error) error {
	if errors.Is(err, as) {
		return no
	}
	return err
}
