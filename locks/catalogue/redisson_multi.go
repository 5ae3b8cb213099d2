package catalogue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/locks"
)

var redissonMulti = locks.Spec{
	Name: "redisson-multi",
	Doc: "reentrant's keys, one after another in the order in which they are named; what a try has is given back " +
		"when a key is refused",
	Source: "Redisson, RedissonMultiLock.tryLock with a lease and without waiting; " +
		"its last step does not look whose a key is",
	Sites:   locks.OneSite,
	Assumes: keepsKeys + doneInTime,
	Claims:  multiClaims,
	Open:    func(e locks.Env) (locks.Lock, error) { return newRedissonMulti(e), nil },
}

type redissonMultiLock struct {
	client redis.UniversalClient
	within string // prefix, see locks.Env
	id     string // of this worker
	calls  int64
}

func newRedissonMulti(e locks.Env) *redissonMultiLock {
	return &redissonMultiLock{client: e.Sites[0], within: e.Within, id: uuid()}
}

// unlock returns 0 if the owner does not hold the lock. KEYS: the lock and the channel. ARGV: the owner.
var unlock = redis.NewScript(`
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call("DEL", KEYS[1])
redis.call("PUBLISH", KEYS[2], "0")
return 1`)

func (l *redissonMultiLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return l.AcquireAll(ctx, []string{key}, ttl, 0)
}

// AcquireAll takes the keys one after another. When it has all of them, it extends each lease, so that the leases
// end together.
func (l *redissonMultiLock) AcquireAll(ctx context.Context, keys []string, ttl, _ time.Duration) (locks.Lease, error) {
	lease := l.lease(keys)
	call := time.Now()
	for i, key := range keys {
		if err := l.lock(ctx, key, lease.Token, ttl); err != nil {
			return lease, undone(err, l.unlock(context.WithoutCancel(ctx), keys[:i], lease.Token))
		}
	}
	err := l.prolong(ctx, keys, lease.Token, ttl)
	if errors.Is(err, locks.ErrLost) {
		return lease, undone(locks.ErrBusy, l.unlock(context.WithoutCancel(ctx), keys, lease.Token))
	}
	return from(lease, call, ttl, locks.AfterGrant(err))
}

func (l *redissonMultiLock) prolong(ctx context.Context, keys []string, token string, ttl time.Duration) error {
	var errs []error
	for _, key := range keys {
		errs = append(errs, owned(stay.Run(ctx, l.client, []string{key}, token, ttl.Milliseconds()).Int64()))
	}
	return together(errs)
}

func (l *redissonMultiLock) lease(keys []string) locks.Lease {
	l.calls++
	return locks.Lease{Key: keys[0], Keys: keys, Token: fmt.Sprintf("%s:%d", l.id, l.calls)}
}

func (l *redissonMultiLock) lock(ctx context.Context, key, token string, ttl time.Duration) error {
	return granted(enter.Run(ctx, l.client, []string{key}, token, ttl.Milliseconds(), 1).Int64())
}

func (l *redissonMultiLock) unlock(ctx context.Context, keys []string, token string) error {
	var errs []error
	for _, key := range keys {
		errs = append(errs, owned(unlock.Run(ctx, l.client,
			[]string{key, redissonSibling(l.within, redissonChannel, key)}, token).Int64()))
	}
	return together(errs)
}

func (l *redissonMultiLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	return from(lease, call, ttl, l.prolong(ctx, lease.Keys, lease.Token, ttl))
}

func (l *redissonMultiLock) Release(ctx context.Context, lease locks.Lease) error {
	return l.unlock(ctx, lease.Keys, lease.Token)
}

func (l *redissonMultiLock) Close() error { return nil }
