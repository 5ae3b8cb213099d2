package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
)

func hello(bool) map[string]any {
	return greeting("redsync", "github.com/go-redsync/redsync/v4", []string{"single", "redlock"}, "excludes", "expires",
		"owned", "cleans")
}

var (
	pools  []redis.Pool
	locker *redsync.Redsync
)

func open(_ context.Context, sites []site) error {
	for _, s := range sites {
		pools = append(pools, pool(s))
	}
	locker = redsync.New(pools...)
	return nil
}

type lock struct {
	*redsync.Mutex
	tried time.Time
}

func acquire(ctx context.Context, key string, ttl, _ time.Duration) (*lock, error) {
	l := &lock{Mutex: locker.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(1))}
	began := time.Now()
	err := l.LockContext(ctx)
	if errors.Is(err, redsync.ErrFailed) && len(pools) == 1 && time.Since(began) < ttl/2 && ctx.Err() == nil {
		return l, errBusy // older releases give no other reason
	}
	return l, l.outcome(err == nil, err, errBusy)
}

// The oldest releases do not report the token or the end of the lease.
func (l *lock) token() string {
	if m, ok := any(l.Mutex).(interface{ Value() string }); ok {
		return m.Value()
	}
	return ""
}

func (l *lock) until() (t time.Time) {
	if m, ok := any(l.Mutex).(interface{ Until() time.Time }); ok {
		t = m.Until()
	}
	return t
}

func (l *lock) extend(ctx context.Context, ttl time.Duration) error {
	redsync.WithExpiry(ttl).Apply(l.Mutex)
	ok, err := l.ExtendContext(ctx)
	return l.outcome(ok, err, errLost)
}

func (l *lock) release(ctx context.Context) error {
	ok, err := l.UnlockContext(ctx)
	return l.outcome(ok, err, errLost)
}

// outcome returns the error no if the sites that refused leave no majority for the call.
func (l *lock) outcome(ok bool, err, no error) error {
	switch {
	case ok:
		return nil
	case err == nil || strings.HasPrefix(err.Error(), "lock already taken,"),
		strings.Count(err.Error(), "already") >= len(pools)-len(pools)/2:
		return no
	}
	return err
}
