package main

import (
	"context"
	"errors"
	"time"

	"github.com/kvtools/redis"
	"github.com/kvtools/valkeyrie/store"
)

// hello: giving up a wait and an error that ends it have one answer. A lease is renewed for its whole seconds, so that it has no others.
func hello(bool) map[string]any {
	h := greeting(name, "github.com/kvtools/redis", []string{"single"}, "excludes", "expires", "owned", "cleans", "renews", "waits", "busy_may_lie")
	h["lingers_ms"] = 999
	return h
}

var servers *redis.Store

func open(ctx context.Context, sites []site) (err error) {
	s := sites[0]
	servers, err = connect(ctx, []string{s.addr()}, &redis.Config{Username: s.User, Password: s.Password, DB: s.DB, PoolSize: 1000})
	return err
}

// lock is a hold, which the context given to Lock ends, too.
type lock struct {
	store.Locker
	held  <-chan struct{}
	stop  context.CancelFunc
	tried time.Time
}

var errGivenUp = errors.New("the wait ended as the lock was granted: it is not renewed, and Unlock would wait for ever")

func acquire(ctx context.Context, key string, ttl, wait time.Duration) (*lock, error) {
	l := &lock{tried: time.Now()}
	var err error
	if l.Locker, err = servers.NewLock(ctx, key, &store.LockOptions{TTL: (ttl + time.Second - 1).Truncate(time.Second)}); err != nil {
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
	return l, err
}

func (l *lock) token() string         { return "" }
func (l *lock) lost() <-chan struct{} { return l.held }

func (l *lock) extend(context.Context, time.Duration) error { return errors.ErrUnsupported }

// release: the client repeats a command whose answer was lost, after 8 ms at least, and an unlock that is repeated is refused.
func (l *lock) release(ctx context.Context) error {
	defer l.stop()
	began := time.Now()
	err := l.Unlock(ctx)
	if (errors.Is(err, store.ErrKeyModified) || errors.Is(err, store.ErrKeyNotFound)) && time.Since(began) < 8*time.Millisecond {
		return errLost
	}
	return err
}
