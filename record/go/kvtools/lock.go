package main

import (
	"context"
	"errors"
	"time"

	"github.com/kvtools/redis"
	"github.com/kvtools/valkeyrie/store"
	client "github.com/redis/go-redis/v9"
)

// hello describes the lock. The library gives the same answer if a wait is given up and if an error ends it; hence
// "busy_may_lie". It renews leases by whole seconds, so all leases are whole seconds.
func hello(bool) map[string]any {
	h := greeting(name, "github.com/kvtools/redis", []string{"single"}, "excludes", "expires", "owned", "cleans",
		"renews", "waits", "busy_may_lie")
	h["lingers_ms"] = 999
	return h
}

var (
	servers *redis.Store
	beside  *client.Client // client for the method since
)

func open(ctx context.Context, sites []site) (err error) {
	s := sites[0]
	beside = client.NewClient(&client.Options{
		Addr: s.addr(), Username: s.User, Password: s.Password, DB: s.DB, MaxRetries: -1, PoolSize: 1000,
		ReadTimeout: time.Second, DialTimeout: time.Second,
	})
	servers, err = connect(ctx, []string{s.addr()},
		&redis.Config{Username: s.User, Password: s.Password, DB: s.DB, PoolSize: 1000})
	return err
}

// lock is a hold. It also ends when the context of its call to Lock is cancelled.
type lock struct {
	store.Locker
	held  <-chan struct{}
	stop  context.CancelFunc
	tried time.Time
}

var errGivenUp = errors.New("the wait ended as the lock was granted: it is not renewed, and Unlock would wait for ever")

func acquire(ctx context.Context, key string, ttl, wait time.Duration) (*lock, error) {
	l := &lock{tried: time.Now()}
	lease := (ttl + time.Second - 1).Truncate(time.Second)
	var err error
	if l.Locker, err = servers.NewLock(ctx, key, &store.LockOptions{TTL: lease}); err != nil {
		return nil, err
	}
	holding, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	patience := time.AfterFunc(max(wait, 20*time.Millisecond), stop)
	wanted := context.AfterFunc(ctx, stop)
	l.held, err = l.Lock(holding)
	if inTime := patience.Stop(); errors.Is(err, redis.ErrAbortTryLock) {
		err = errBusy
	} else if !(wanted() && inTime) && err == nil {
		err = errGivenUp
	}
	if err == nil && wait > 0 {
		l.since(ctx, key, lease)
	}
	return l, err
}

// since finds out when the granted try was made, which the library does not report. It computes this from the TTL
// that the key has left.
func (l *lock) since(ctx context.Context, key string, lease time.Duration) {
	const rounded = 2 * time.Millisecond
	asked := time.Now()
	left, err := beside.PTTL(ctx, key).Result()
	if made := asked.Add(left - lease - rounded); err == nil && left > 0 && made.After(l.tried) {
		l.tried = made
	}
}

func (l *lock) token() string         { return "" }
func (l *lock) lost() <-chan struct{} { return l.held }

func (l *lock) extend(context.Context, time.Duration) error { return errors.ErrUnsupported }

// release unlocks. If an answer was lost, the client repeats the command after 8 ms or more, and the repeated unlock
// is refused. So only a refusal within 8 ms proves that the lock was lost.
func (l *lock) release(ctx context.Context) error {
	defer l.stop()
	began := time.Now()
	err := l.Unlock(ctx)
	if (errors.Is(err, store.ErrKeyModified) || errors.Is(err, store.ErrKeyNotFound)) &&
		time.Since(began) < 8*time.Millisecond {
		return errLost
	}
	return err
}
