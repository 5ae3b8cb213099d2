package catalogue

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

// comet-ml/opik pull request 730; Redisson issues 6302 and 4100: a lock made of a semaphore with one permit. The number
// of permits is kept for each name that was ever locked.
var permitsStay = locks.Spec{
	Name: "permits-stay", Doc: "a semaphore with one permit: a counter of free ones, and a sorted set of those " +
		"that are out by their end",
	Source: "opik pull request 730; Redisson issue 6302", Sites: locks.OneSite, Broken: "the counter of every name " +
		"stays in the server for good",
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true}, Shared: true,
	Open: func(e locks.Env) (locks.Lock, error) { return &permitLock{e.Sites[0]}, nil },
}

type permitLock struct{ client redis.UniversalClient }

// The scripts take: permits, ends; permit, lease. By the server's clock.
var (
	takePermit = redis.NewScript(`
local t = redis.call("TIME")
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call("SETNX", KEYS[1], 1)
local over = redis.call("ZREMRANGEBYSCORE", KEYS[2], "-inf", now)
if redis.call("INCRBY", KEYS[1], over) < 1 then return 0 end
redis.call("DECR", KEYS[1])
redis.call("ZADD", KEYS[2], now + ARGV[2], ARGV[1])
return 1`)
	keepPermit = redis.NewScript(`
local t = redis.call("TIME")
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local ends = redis.call("ZSCORE", KEYS[2], ARGV[1])
if not ends or tonumber(ends) <= now then return 0 end
redis.call("ZADD", KEYS[2], now + ARGV[2], ARGV[1])
return 1`)
	givePermit = redis.NewScript(`
local t = redis.call("TIME")
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local ends = redis.call("ZSCORE", KEYS[2], ARGV[1])
if redis.call("ZREM", KEYS[2], ARGV[1]) == 0 then return 0 end
redis.call("INCR", KEYS[1])
if tonumber(ends) <= now then return 0 end
return 1`)
)

func permitKeys(key string) []string { return []string{key, sibling("timeout", key)} }

func (l *permitLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	err := granted(takePermit.Run(ctx, l.client, permitKeys(key), lease.Token, ttl.Milliseconds()).Int64())
	return from(lease, call, ttl, err)
}

func (l *permitLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	err := owned(keepPermit.Run(ctx, l.client, permitKeys(lease.Key), lease.Token, ttl.Milliseconds()).Int64())
	return from(lease, call, ttl, err)
}

func (l *permitLock) Release(ctx context.Context, lease locks.Lease) error {
	return owned(givePermit.Run(ctx, l.client, permitKeys(lease.Key), lease.Token).Int64())
}

func (l *permitLock) Close() error { return nil }
