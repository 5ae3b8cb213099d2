package locks

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var watchUnheard = Spec{
	Name:   "watch-unheard",
	Doc:    "watch, but an EXEC that was aborted counts as done",
	Source: "code that looks at the error of EXEC but not at its nil reply",
	Sites:  OneSite,
	Broken: "the lease was extended, or released, only if EXEC says so: its holder believes in what did not happen",
	Expect: []Expectation{{Cause: history.FalseExtension}},
	Claims: lease.Claims,
	Open:   func(e Env) (Lock, error) { return &watchUnheardLock{watchLock{leaseLock{e.Sites[0]}, e}}, nil },
}

type watchUnheardLock struct{ watchLock }

func (l *watchUnheardLock) Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	call := time.Now()
	err := unheard(l.once(ctx, lease, func(p redis.Pipeliner) { p.PExpire(ctx, lease.Key, ttl) }))
	return lease.from(call, ttl, err)
}

func (l *watchUnheardLock) Release(ctx context.Context, lease Lease) error {
	return unheard(l.once(ctx, lease, func(p redis.Pipeliner) { p.Del(ctx, lease.Key) }))
}

func unheard(err error) error {
	if errors.Is(err, redis.TxFailedErr) {
		return nil
	}
	return err
}
