package main

import (
	"context"
	"errors"
	"time"

	"github.com/RichardKnop/machinery/v1/config"
	"github.com/RichardKnop/machinery/v1/locks/redis"
)

// hello: a lease ends at a time of the caller's clock, whenever the server was asked, and what has ended is taken over
// with an expiry of whole seconds. The client repeats commands, and no option forbids it: a SETNX that is repeated
// finds what it has set, and is refused.
func hello(bool) map[string]any {
	h := greeting("machinery", "github.com/RichardKnop/machinery", []string{"single"}, "excludes", "expires", "cleans",
		"begins", "busy_may_lie", "defaults") // its clients name no user
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

// until: the library cuts the expiry to milliseconds.
func (l *lock) until() time.Time { return l.end.Add(-2 * time.Millisecond) }

func (l *lock) extend(context.Context, time.Duration) error { return errors.ErrUnsupported }

// release: the library has none, so that a hold is given back by waiting for the end of its lease, until just before
// others may have it.
func (l *lock) release(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(l.until()) - time.Millisecond):
		return nil
	}
}
