package catalogue

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

// dv/redis-semaphore issue 13 and bbangert/retools issue 18: whether a hold is stale is decided by the clock of whoever
// asks.
var localTime = locks.Spec{
	Name: "local-time", Doc: "a sorted set of holders by the end of their leases; " +
		"those that are over are dropped by who comes next",
	Source: "dv/redis-semaphore issue 13; bbangert/retools issue 18", Sites: locks.OneSite,
	Broken: "the times are the clients': a client whose clock is ahead drops a hold that is not over",
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true}, Shared: true,
	Open: func(e locks.Env) (locks.Lock, error) { return &localTimeLock{e.Sites[0]}, nil },
}

type localTimeLock struct{ client redis.UniversalClient }

// The scripts take: holders; token, the client's time, lease.
var (
	dropAndTake = redis.NewScript(`
redis.call("ZREMRANGEBYSCORE", KEYS[1], "-inf", ARGV[2])
if redis.call("ZCARD", KEYS[1]) > 0 then return 0 end
return redis.call("ZADD", KEYS[1], ARGV[2] + ARGV[3], ARGV[1])`)
	moveEnd = redis.NewScript(`
if not redis.call("ZSCORE", KEYS[1], ARGV[1]) then return 0 end
redis.call("ZADD", KEYS[1], ARGV[2] + ARGV[3], ARGV[1])
return 1`)
)

func (l *localTimeLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	err := granted(dropAndTake.Run(ctx, l.client, []string{key}, lease.Token, call.UnixMilli(),
		ttl.Milliseconds()).Int64())
	return from(lease, call, ttl, err)
}

func (l *localTimeLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	err := owned(moveEnd.Run(ctx, l.client, []string{lease.Key}, lease.Token, call.UnixMilli(),
		ttl.Milliseconds()).Int64())
	return from(lease, call, ttl, err)
}

func (l *localTimeLock) Release(ctx context.Context, lease locks.Lease) error {
	return owned(l.client.ZRem(ctx, lease.Key, lease.Token).Result())
}

func (l *localTimeLock) Close() error { return nil }
