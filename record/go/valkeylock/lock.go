package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/valkey-io/valkey-go"
	"github.com/valkey-io/valkey-go/valkeylock"
)

// hello describes the lock. ErrNotLocked stands for a refusal and for any other error; hence "busy_may_lie". The
// function that cancels a hold returns no result.
func hello(bool) map[string]any {
	h := greeting("valkeylock", "github.com/valkey-io/valkey-go", []string{"single"}, "excludes", "expires", "renews",
		"cleans", "busy_may_lie")
	h["keys"] = "valkeylock:0:{key}"
	return h
}

var (
	home    site
	mu      sync.Mutex
	lockers = map[time.Duration]valkeylock.Locker{} // by lease, which is an option of a locker
)

func open(_ context.Context, sites []site) error {
	home = sites[0]
	return nil
}

// locker returns a locker with the options that the README recommends for one server.
func locker(ttl time.Duration) (_ valkeylock.Locker, err error) {
	mu.Lock()
	defer mu.Unlock()
	if lockers[ttl] == nil {
		lockers[ttl], err = valkeylock.NewLocker(valkeylock.LockerOption{
			ClientOption: valkey.ClientOption{InitAddress: []string{home.addr()}, Username: home.User,
				Password: home.Password, SelectDB: home.DB, ForceSingleClient: true},
			KeyMajority: 1, NoLoopTracking: true, KeyValidity: ttl,
		})
	}
	return lockers[ttl], err
}

type lock struct {
	ctx    context.Context
	cancel context.CancelFunc
	tried  time.Time
}

func acquire(ctx context.Context, key string, ttl, _ time.Duration) (*lock, error) {
	by, err := locker(ttl)
	if err != nil {
		return nil, err
	}
	held, drop := context.WithCancel(context.WithoutCancel(ctx)) // the hold lasts longer than the call
	keep := context.AfterFunc(ctx, drop)
	l := &lock{}
	if l.ctx, l.cancel, err = by.TryWithContext(held, key); errors.Is(err, valkeylock.ErrNotLocked) {
		err = errBusy
	}
	if !keep() && err == nil { // ctx was cancelled just after the grant, which ended the hold
		l.cancel()
		err = ctx.Err()
	}
	return l, err
}

func (l *lock) token() string         { return "" }
func (l *lock) lost() <-chan struct{} { return l.ctx.Done() }

func (l *lock) extend(context.Context, time.Duration) error { return errors.ErrUnsupported }

func (l *lock) release(context.Context) error {
	l.cancel()
	return nil
}
