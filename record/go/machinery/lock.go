package main

import (
	"context"
	"errors"
	"time"

	"github.com/RichardKnop/machinery/v1/config"
	"github.com/RichardKnop/machinery/v1/locks/redis"
)

// hello describes the lock. Leases end at a time of the caller's clock. If a caller takes over a lock whose lease
// has ended, the key gets an expiry in whole seconds. The client repeats commands, and no option forbids this. A
// repeated SETNX finds the key that it has set itself, and is refused; hence "busy_may_lie".
func hello(bool) map[string]any {
	h := greeting("machinery", "github.com/RichardKnop/machinery", []string{"single"}, "excludes", "expires", "cleans",
		"begins", "busy_may_lie", "defaults") // its clients use no user name
	h["lingers_ms"] = 999
	return h
}

var locker redis.Lock

func open(_ context.Context, sites []site) error {
	s := sites[0]
	addr := s.addr()
	if s.Password != "" {
		addr = s.Password + "@" + addr
	}
	locker = redis.New(&config.Config{}, []string{addr}, s.DB, 1)
	return nil
}

type lock struct {
	end   time.Time
	tried time.Time
}

func acquire(_ context.Context, key string, ttl, _ time.Duration) (*lock, error) {
	l := &lock{end: time.Now().Add(ttl)}
	err := locker.Lock(key, l.end.UnixNano())
	if errors.Is(err, redis.ErrRedisLockFailed) {
		err = errBusy
	}
	return l, err
}

func (l *lock) token() string { return "" }

// until returns the end of the lease, minus 2 ms because the library cuts the expiry to milliseconds.
func (l *lock) until() time.Time { return l.end.Add(-2 * time.Millisecond) }

func (l *lock) extend(context.Context, time.Duration) error { return errors.ErrUnsupported }

// release waits until just before the lease ends, because the library cannot release a lock.
func (l *lock) release(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(l.until()) - time.Millisecond):
		return nil
	}
}
