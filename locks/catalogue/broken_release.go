package catalogue

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var plainDel = locks.Spec{
	Name:   "plain-del",
	Doc:    "SET NX PX, released by an unconditional DEL",
	Source: "the recipe of most blog posts; redis.io, SET, warns of it",
	Sites:  locks.OneSite,
	Broken: "a holder whose lease has expired deletes the lock of its successor",
	Expect: []locks.Expectation{{Cause: history.ForeignRelease}},
	Claims: lease.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return &plainDelLock{leaseLock{e.Sites[0]}}, nil },
}

type plainDelLock struct{ leaseLock }

func (l *plainDelLock) Release(ctx context.Context, lease locks.Lease) error {
	return deleteAny(ctx, l.client, lease.Key)
}

var getDel = locks.Spec{
	Name:   "get-del",
	Doc:    "SET NX PX, released by GET, a comparison in the client, and DEL",
	Source: "the usual repair of plain-del, without a script",
	Sites:  locks.OneSite,
	Broken: "the lease can expire and be granted to another worker between the comparison and the DEL",
	Expect: []locks.Expectation{{Cause: history.ForeignRelease}},
	Claims: lease.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return &getDelLock{leaseLock{e.Sites[0]}, e}, nil },
}

type getDelLock struct {
	leaseLock
	env locks.Env
}

func (l *getDelLock) Release(ctx context.Context, lease locks.Lease) error {
	held, err := l.client.Get(ctx, lease.Key).Result()
	if errors.Is(err, redis.Nil) || err == nil && held != lease.Token {
		return locks.ErrLost
	}
	if err != nil {
		return err
	}
	if err := l.env.Between(ctx, lease.Key); err != nil {
		return err
	}
	return deleteAny(ctx, l.client, lease.Key)
}

var clockDel = locks.Spec{
	Name:   "clock-del",
	Doc:    "SET NX PX, released by DEL if by the holder's clock the lease is not over",
	Source: "Celery, Task Cookbook: ensuring a task is only executed one at a time",
	Sites:  locks.OneSite,
	Broken: "time passes between the look at the clock and the DEL: it deletes the lock of the holder of that moment",
	Expect: []locks.Expectation{{Cause: history.ForeignRelease}},
	Claims: lease.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return &clockDelLock{leaseLock{e.Sites[0]}, e}, nil },
}

type clockDelLock struct {
	leaseLock
	env locks.Env
}

func (l *clockDelLock) Release(ctx context.Context, lease locks.Lease) error {
	if lease.Until.IsZero() {
		return l.leaseLock.Release(ctx, lease) // the reply to an Acquire was lost, so the lock may be held
	}
	if !time.Now().Before(lease.Until) {
		return locks.ErrLost
	}
	if err := l.env.Between(ctx, lease.Key); err != nil {
		return err
	}
	return deleteAny(ctx, l.client, lease.Key)
}

var watchLax = locks.Spec{
	Name:   "watch-lax",
	Doc:    "watch, but the release compares nothing: WATCH, MULTI, DEL, EXEC",
	Source: "reviews: \"it is in a transaction, so it is safe\"",
	Sites:  locks.OneSite,
	Broken: "a transaction that compares nothing is a plain DEL: a late holder deletes its successor's lock",
	Expect: []locks.Expectation{{Cause: history.ForeignRelease}},
	Claims: lease.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return &watchLaxLock{leaseLock{e.Sites[0]}}, nil },
}

type watchLaxLock struct{ leaseLock }

func (l *watchLaxLock) Release(ctx context.Context, lease locks.Lease) error {
	return l.client.Watch(ctx, func(tx *redis.Tx) error {
		return exec(ctx, tx, func(p redis.Pipeliner) { p.Del(ctx, lease.Key) })
	}, lease.Key)
}

var watchUnheard = locks.Spec{
	Name:   "watch-unheard",
	Doc:    "watch, but an EXEC that was aborted counts as done",
	Source: "code that looks at the error of EXEC but not at its nil reply",
	Sites:  locks.OneSite,
	Broken: "the lease was extended, or released, only if EXEC says so: its holder believes in what did not happen",
	Expect: []locks.Expectation{{Cause: history.FalseExtension}},
	Claims: lease.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &watchUnheardLock{watchLock{leaseLock{e.Sites[0]}, e}}, nil
	},
}

type watchUnheardLock struct{ watchLock }

func (l *watchUnheardLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	err := unheard(l.once(ctx, lease, func(p redis.Pipeliner) { p.PExpire(ctx, lease.Key, ttl) }))
	return from(lease, call, ttl, err)
}

func (l *watchUnheardLock) Release(ctx context.Context, lease locks.Lease) error {
	return unheard(l.once(ctx, lease, func(p redis.Pipeliner) { p.Del(ctx, lease.Key) }))
}

func unheard(err error) error {
	if errors.Is(err, redis.TxFailedErr) {
		return nil
	}
	return err
}
