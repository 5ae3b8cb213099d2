package main

import (
	"context"
	"errors"
	"time"

	"github.com/kvtools/redis"
	"github.com/kvtools/valkeyrie/store"
)

// hello: giving up a wait and an error that ends it have one answer.
func hello(bool) map[string]any {
	return greeting("kvtools", "github.com/kvtools/redis", []string{"single"}, "excludes", "expires", "owned", "cleans", "renews", "waits", "busy_may_lie")
}

var servers *redis.Store

func open(ctx context.Context, sites []site) (err error) {
	s := sites[0]
	servers, err = redis.New(ctx, []string{s.addr()}, &redis.Config{Username: s.User, Password: s.Password, DB: s.DB})
	return err
}

// lock is a hold, which the context given to Lock ends, too.
type lock struct {
	store.Locker
	held  <-chan struct{}
	stop  context.CancelFunc
	tried time.Time
}

func acquire(ctx context.Context, key string, ttl, wait time.Duration) (*lock, error) {
	l := &lock{tried: time.Now()}
	var err error
	if l.Locker, err = servers.NewLock(ctx, key, &store.LockOptions{TTL: ttl}); err != nil {
		return nil, err
	}
	holding, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	patience := time.AfterFunc(max(wait, 20*time.Millisecond), stop)
	defer patience.Stop()
	defer context.AfterFunc(ctx, stop)()
	l.held, err = l.Lock(holding)
	if errors.Is(err, redis.ErrAbortTryLock) {
		err = errBusy
	}
	return l, err
}

func (l *lock) token() string         { return "" }
func (l *lock) lost() <-chan struct{} { return l.held }

func (l *lock) extend(context.Context, time.Duration) error { return errors.ErrUnsupported }

func (l *lock) release(ctx context.Context) error {
	defer l.stop()
	if err := l.Unlock(ctx); !errors.Is(err, store.ErrKeyModified) && !errors.Is(err, store.ErrKeyNotFound) {
		return err
	}
	return errLost
}
