package catalogue

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var subscribeLate = locks.Spec{
	Name:   "subscribe-late",
	Doc:    "lease whose release publishes a message; who was refused subscribes and waits for it, for a lease at most",
	Source: "redis-lock-py issue 3; Redisson issue 1763",
	Sites:  locks.OneSite,
	Broken: "a release between the refusal and the subscription is not heard of, and no waiter looks again: " +
		"the lock is free and all sleep",
	Expect: []locks.Expectation{{Cause: history.LostWakeup, Scenario: "sleepers"}},
	Claims: lease.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return openNotifying(e, func(_ context.Context, l *notifyingLock) (time.Duration, history.Wake, error) {
			return l.lease, history.LeaseEnd, nil
		}), nil
	},
}

// notifyingLock is a lease whose release publishes a message that wakes the waiters.
type notifyingLock struct {
	leaseLock
	waiting
	look func(context.Context, *notifyingLock) (time.Duration, history.Wake, error)
	// Key and TTL of the last try.
	key   string
	lease time.Duration
}

func openNotifying(e locks.Env, look func(context.Context, *notifyingLock) (time.Duration, history.Wake,
	error)) *notifyingLock {
	return &notifyingLock{leaseLock: leaseLock{e.Sites[0]}, waiting: waiting{client: e.Sites[0], process: e.Process},
		look: look}
}

var deleteAndPublish = redis.NewScript(`
if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
redis.call("PUBLISH", ARGV[2], "0")
return redis.call("DEL", KEYS[1])`)

func (l *notifyingLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	l.key, l.lease = key, ttl
	return l.leaseLock.Acquire(ctx, key, ttl)
}

func (l *notifyingLock) Release(ctx context.Context, lease locks.Lease) error {
	return owned(deleteAndPublish.Run(ctx, l.leaseLock.client, []string{lease.Key}, lease.Token,
		sibling("released", lease.Key)).Int64())
}

func (l *notifyingLock) Wait(ctx context.Context, key string) (history.Wake, error) {
	return l.wait(ctx, sibling("released", key), func(ctx context.Context) (time.Duration, history.Wake, error) {
		return l.look(ctx, l)
	})
}

func (l *notifyingLock) Close() error { return l.waiting.close() }

var deafToExpiry = locks.Spec{
	Name:   "deaf-to-expiry",
	Doc:    "lease whose release publishes a message; waiters look once when they have subscribed and then wait for it",
	Source: "Spring Integration pull requests 3691 and 3702; python-redis-lock pull request 18",
	Sites:  locks.OneSite,
	Broken: "no message says that a lease has expired: when a holder dies, those who wait sleep on beside a free lock",
	Expect: []locks.Expectation{{Cause: history.LostWakeup}},
	Claims: lease.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return openNotifying(e, func(ctx context.Context, l *notifyingLock) (time.Duration, history.Wake, error) {
			held, err := l.leaseLock.client.Exists(ctx, l.key).Result()
			if err != nil || held == 0 {
				return gone, history.Poll, err
			}
			return -1, history.Poll, nil
		}), nil
	},
}

var deadInLine = locks.Spec{
	Name:   "dead-in-line",
	Doc:    "fair, with a plain queue: the head is next; who gives up takes its place out of it",
	Source: "hiero-json-rpc-relay issue 4725, RedisLockStrategy; amphp/redis issue 61",
	Sites:  locks.OneSite,
	Broken: "a waiter that dies stays in the queue: when it comes to the head no worker gets the lock any more",
	Expect: []locks.Expectation{{Cause: history.Deadlock}},
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Ordered: true},
	Open: func(e locks.Env) (locks.Lock, error) {
		l := newFair(e)
		l.enter = lineUp
		return l, nil
	},
}

// lineUp returns 1 if the lock is granted. KEYS: the lock, the queue and its members. ARGV: the token and the lease
// in ms.
var lineUp = redis.NewScript(`
local head = redis.call("LINDEX", KEYS[2], 0)
if redis.call("EXISTS", KEYS[1]) == 0 and (not head or head == ARGV[1]) then
	redis.call("LPOP", KEYS[2])
	redis.call("ZREM", KEYS[3], ARGV[1])
	redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
	return 1
end
if redis.call("ZADD", KEYS[3], 0, ARGV[1]) == 1 then redis.call("RPUSH", KEYS[2], ARGV[1]) end
return 0`)

var wakesItself = locks.Spec{
	Name: "wakes-itself",
	Doc: "lease whose release publishes a message; a try in vain is taken back like a hold, " +
		"and publishes one as well",
	Source: "github.com/redis/rueidis/rueidislock, README, NoLoopTracking: clients that hear of their own changes",
	Sites:  locks.OneSite,
	Broken: "each try in vain wakes those who wait, who try in vain: waiters keep each other busy, and the server, " +
		"as long as the lock is held",
	Expect: []locks.Expectation{{Cause: history.Storm, Scenario: "cost"}},
	Claims: lease.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &wakesItselfLock{openNotifying(e,
			func(ctx context.Context, l *notifyingLock) (time.Duration, history.Wake, error) {
				left, err := l.leaseLock.client.PTTL(ctx, l.key).Result()
				return left, history.LeaseEnd, err
			})}, nil
	},
}

type wakesItselfLock struct{ *notifyingLock }

func (l *wakesItselfLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := l.notifyingLock.Acquire(ctx, key, ttl)
	if err == locks.ErrBusy {
		// An error does not matter: no waiter depends on this message.
		_ = l.leaseLock.client.Publish(ctx, sibling("released", key), "0").Err()
	}
	return lease, err
}
