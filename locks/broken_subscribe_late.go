package locks

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var subscribeLate = Spec{
	Name:   "subscribe-late",
	Doc:    "lease whose release publishes a message; who was refused subscribes and waits for it, for a lease at most",
	Source: "redis-lock-py issue 3; Redisson issue 1763",
	Sites:  OneSite,
	Broken: "a release between the refusal and the subscription is not heard of, and no waiter looks again: the lock is free and all sleep",
	Expect: []Expectation{{Cause: history.LostWakeup, Scenario: "sleepers"}},
	Claims: lease.Claims,
	Open: func(e Env) (Lock, error) {
		return openNotifying(e, func(_ context.Context, l *notifyingLock) (time.Duration, history.Wake, error) {
			return l.lease, history.LeaseEnd, nil
		}), nil
	},
}

// notifyingLock is a lease whose waiters are woken by a message.
type notifyingLock struct {
	leaseLock
	waiting
	look func(context.Context, *notifyingLock) (time.Duration, history.Wake, error)
	// Of the last try:
	key   string
	lease time.Duration
}

func openNotifying(e Env, look func(context.Context, *notifyingLock) (time.Duration, history.Wake, error)) *notifyingLock {
	return &notifyingLock{leaseLock: leaseLock{e.Sites[0]}, waiting: waiting{client: e.Sites[0], process: e.Process}, look: look}
}

var deleteAndPublish = redis.NewScript(`
if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
redis.call("PUBLISH", ARGV[2], "0")
return redis.call("DEL", KEYS[1])`)

func (l *notifyingLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	l.key, l.lease = key, ttl
	return l.leaseLock.Acquire(ctx, key, ttl)
}

func (l *notifyingLock) Release(ctx context.Context, lease Lease) error {
	return owned(deleteAndPublish.Run(ctx, l.leaseLock.client, []string{lease.Key}, lease.Token, sibling("released", lease.Key)).Int64())
}

func (l *notifyingLock) Wait(ctx context.Context, key string) (history.Wake, error) {
	return l.wait(ctx, sibling("released", key), func(ctx context.Context) (time.Duration, history.Wake, error) { return l.look(ctx, l) })
}

func (l *notifyingLock) Close() error { return l.waiting.close() }
