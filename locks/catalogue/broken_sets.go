package catalogue

import (
	"context"
	"errors"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

var multiKept = locks.Spec{
	Name:   "multi-kept",
	Doc:    "redisson-multi that gives nothing back when a key is refused",
	Source: "loops over SET NX that return at the first refusal: the keys expire after all",
	Sites:  locks.OneSite,
	Broken: "what a refused try has taken is held by no worker until its lease ends, and refused to all others",
	Expect: []locks.Expectation{{Cause: history.PartKept}},
	Claims: multiClaims,
	Open:   func(e locks.Env) (locks.Lock, error) { return &multiKeptLock{newRedissonMulti(e)}, nil },
}

type multiKeptLock struct{ *redissonMultiLock }

func (l *multiKeptLock) AcquireAll(ctx context.Context, keys []string, ttl, _ time.Duration) (locks.Lease, error) {
	lease := l.lease(keys)
	call := time.Now()
	for _, key := range keys {
		if err := l.lock(ctx, key, lease.Token, ttl); err != nil {
			return lease, err
		}
	}
	return from(lease, call, ttl, nil)
}

var multiDel = locks.Spec{
	Name:   "multi-del",
	Doc:    "multi that is released by DEL of all of its keys",
	Source: "plain-del, of several keys",
	Sites:  locks.OneSite,
	Broken: "a holder whose lease is over deletes the keys of others",
	Expect: []locks.Expectation{{Cause: history.ForeignRelease}, {Cause: history.FalseRelease}},
	Claims: multiClaims,
	Shared: true,
	Open:   func(e locks.Env) (locks.Lock, error) { return &multiDelLock{&multiLock{e.Sites[0], allKeys}}, nil },
}

type multiDelLock struct{ *multiLock }

func (l *multiDelLock) Release(ctx context.Context, lease locks.Lease) error {
	var errs []error
	for _, keys := range slots(l.client, lease) {
		errs = append(errs, l.client.Del(ctx, keys...).Err())
	}
	return errors.Join(errs...)
}

var multiWaits = locks.Spec{
	Name: "multi-waits",
	Doc: "redisson-multi that waits for each key, in the order in which they are named, " +
		"and keeps those that it has meanwhile",
	Source: "Redisson, RedissonMultiLock.tryLock with a time to wait: while it waits, leases are twice as long as that",
	Sites:  locks.OneSite,
	Broken: "two callers who name the same keys in another order wait for each other until their patience ends",
	Expect: []locks.Expectation{{Cause: history.Crossing, Scenario: "crossing"}},
	Claims: multiClaims,
	Waits:  true,
	Open:   func(e locks.Env) (locks.Lock, error) { return &multiWaitsLock{newRedissonMulti(e)}, nil },
}

type multiWaitsLock struct{ *redissonMultiLock }

func (l *multiWaitsLock) AcquireWithin(ctx context.Context, key string, ttl, wait time.Duration) (locks.Lease, error) {
	return l.AcquireAll(ctx, []string{key}, ttl, wait)
}

func (l *multiWaitsLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return l.AcquireAll(ctx, []string{key}, ttl, 0)
}

const lookAgain = 2 * time.Millisecond

func (l *multiWaitsLock) AcquireAll(ctx context.Context, keys []string, ttl, wait time.Duration) (locks.Lease, error) {
	lease := l.lease(keys)
	call := time.Now()
	for i, key := range keys {
		err := l.lock(ctx, key, lease.Token, ttl+2*wait)
		for errors.Is(err, locks.ErrBusy) && time.Since(call) < wait {
			select {
			case <-time.After(lookAgain):
				err = l.lock(ctx, key, lease.Token, ttl+2*wait)
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		if err == nil {
			continue
		}
		return lease, undone(err, l.unlock(context.WithoutCancel(ctx), keys[:i], lease.Token))
	}
	lease.Tried = time.Since(call)
	held := time.Now()
	return from(lease, held, ttl, locks.AfterGrant(l.prolong(ctx, keys, lease.Token, ttl)))
}
