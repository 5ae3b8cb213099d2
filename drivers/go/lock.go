package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// hello describes the lock and its claims. If the program was started with the argument "waits", the library itself
// waits.
func hello(waits bool) map[string]any {
	name, claims := "go-redislock", []string{"excludes", "expires", "owned", "cleans"}
	if waits {
		name, claims = name+"-waits", append(claims, "waits")
	}
	return greeting(name, "github.com/bsm/redislock", []string{"single", "replica"}, claims...)
}

var client *redislock.Client

// open connects. The client must not repeat commands: the answer to a repeated command may differ from that to the
// first one.
func open(ctx context.Context, sites []site) error {
	s := sites[0]
	c := redis.NewClient(&redis.Options{
		Addr: s.addr(), Username: s.User, Password: s.Password, DB: s.DB, Protocol: 2, DisableIdentity: true,
		MaxRetries:            -1,
		ContextTimeoutEnabled: true, PoolSize: 1000, ReadTimeout: time.Second, DialTimeout: time.Second,
	})
	client = redislock.New(c)
	return c.Ping(ctx).Err()
}

type lock struct {
	held  *redislock.Lock
	tried time.Time // when the granted try began, or earlier
}

// acquire makes one try. If wait is positive, the library waits for up to this time.
func acquire(ctx context.Context, key string, ttl, wait time.Duration) (*lock, error) {
	var o *redislock.Options
	s := &strategy{redislock.LinearBackoff(50 * time.Millisecond), time.Now()}
	if wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
		o = &redislock.Options{RetryStrategy: s}
	}
	held, err := client.Obtain(ctx, key, ttl, o)
	if errors.Is(err, redislock.ErrNotObtained) {
		return nil, errBusy
	}
	return &lock{held, s.tried}, err
}

// strategy notes when the library was refused last: the next try begins later.
type strategy struct {
	redislock.RetryStrategy
	tried time.Time
}

func (s *strategy) NextBackoff() time.Duration {
	s.tried = time.Now()
	return s.RetryStrategy.NextBackoff()
}

func (l *lock) token() string { return l.held.Token() }

func (l *lock) extend(ctx context.Context, ttl time.Duration) error {
	if err := l.held.Refresh(ctx, ttl, nil); !errors.Is(err, redislock.ErrNotObtained) {
		return err
	}
	return errLost
}

func (l *lock) release(ctx context.Context) error {
	if err := l.held.Release(ctx); !errors.Is(err, redislock.ErrLockNotHeld) {
		return err
	}
	return errLost
}
