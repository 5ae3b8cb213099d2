package main

import (
	"context"
	"errors"
	"sync"
	"time"

	redislock "github.com/go-co-op/gocron-redis-lock/v2"
	gocron "github.com/go-co-op/gocron/v2"
	"github.com/redis/go-redis/v9"
)

// hello describes the lock with the option that extends the lease until the unlock. Its holder does not learn of a
// loss. ErrFailedToObtainLock stands for a refusal and for any other error; hence "busy_may_lie".
func hello(bool) map[string]any {
	return greeting("gocron-redis-lock-auto", "github.com/go-co-op/gocron-redis-lock/v2", []string{"single"},
		"excludes", "expires", "cleans", "renews", "busy_may_lie")
}

var (
	client  *redis.Client
	mu      sync.Mutex
	lockers = map[time.Duration]gocron.Locker{} // by lease, which is an option of a locker
)

func open(ctx context.Context, sites []site) error {
	s := sites[0]
	client = redis.NewClient(&redis.Options{
		Addr: s.addr(), Username: s.User, Password: s.Password, DB: s.DB, MaxRetries: -1, PoolSize: 1000,
		ReadTimeout: time.Second, DialTimeout: time.Second,
	})
	return client.Ping(ctx).Err()
}

func locker(ttl time.Duration) (_ gocron.Locker, err error) {
	mu.Lock()
	defer mu.Unlock()
	if lockers[ttl] == nil {
		lockers[ttl], err = redislock.NewRedisLockerWithOptions(client,
			redislock.WithAutoExtendDuration(ttl/3),
			redislock.WithRedsyncOptions(redislock.WithTries(1), redislock.WithExpiry(ttl)))
	}
	return lockers[ttl], err
}

type lock struct {
	gocron.Lock
	tried time.Time
}

func acquire(ctx context.Context, key string, ttl, _ time.Duration) (*lock, error) {
	by, err := locker(ttl)
	if err != nil {
		return nil, err
	}
	held, err := by.Lock(ctx, key)
	if errors.Is(err, redislock.ErrFailedToObtainLock) {
		err = errBusy
	}
	return &lock{Lock: held}, err
}

func (l *lock) token() string { return "" }

func (l *lock) extend(context.Context, time.Duration) error { return errors.ErrUnsupported }

func (l *lock) release(ctx context.Context) error { return l.Unlock(ctx) }
