package catalogue

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var redissonPermits = locks.Spec{
	Name: "redisson-permits",
	Doc: "a semaphore of 4: a number of free permits, and a set of those that are out with the ends of their " +
		"leases, by the server's clock",
	Source:  "Redisson, RPermitExpirableSemaphore: its keys and channel",
	Sites:   locks.OneSite,
	Assumes: keepsKeys + doneInTime,
	Claims:  history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Permits: semaphorePermits},
	Open:    func(e locks.Env) (locks.Lock, error) { return newPermits(e, permitTake, permitReturn), nil },
}

const semaphorePermits = 4

func newPermits(e locks.Env, enter, leave *redis.Script) *permitsLock {
	return &permitsLock{client: e.Sites[0], within: e.Within, enter: enter, leave: leave}
}

type permitsLock struct {
	client       redis.UniversalClient
	within       string // prefix, see locks.Env
	enter, leave *redis.Script
}

// KEYS of these scripts: the number of free permits, the leases and the channel. ARGV: the token, the number of
// permits asked for, the lease in ms, and the total number of permits.
const permitNow = serverTime + `local asked = tonumber(ARGV[2])
`

// reclaim is Lua code that frees the permits whose leases have ended.
const reclaim = `
local over = redis.call("ZREMRANGEBYSCORE", KEYS[2], "-inf", now)
if over > 0 then redis.call("INCRBY", KEYS[1], over) end
`

// taking is Lua code that takes permits. It returns 1, or 0 if too few permits are free.
const taking = `
if redis.call("EXISTS", KEYS[1]) == 0 then redis.call("SET", KEYS[1], ARGV[4] - redis.call("ZCARD", KEYS[2])) end
if tonumber(redis.call("GET", KEYS[1])) < asked then return 0 end
redis.call("DECRBY", KEYS[1], asked)
for i = 1, asked do redis.call("ZADD", KEYS[2], now + ARGV[3], ARGV[1] .. ":" .. i) end
return 1`

// giveBack is Lua code that frees the caller's permits. It returns 0 if the caller had none.
const giveBack = `
local back = 0
for i = 1, asked do back = back + redis.call("ZREM", KEYS[2], ARGV[1] .. ":" .. i) end
if back == 0 then return 0 end
redis.call("INCRBY", KEYS[1], back)
redis.call("PUBLISH", KEYS[3], back)
return 1`

var (
	permitTake   = redis.NewScript(permitNow + reclaim + taking)
	permitExtend = redis.NewScript(permitNow + reclaim + `
if not redis.call("ZSCORE", KEYS[2], ARGV[1] .. ":1") then return 0 end
for i = 1, asked do redis.call("ZADD", KEYS[2], now + ARGV[3], ARGV[1] .. ":" .. i) end
return 1`)
	permitReturn = redis.NewScript(permitNow + reclaim + giveBack)
)

const (
	permitLeases  = "timeout"
	permitChannel = "redisson_sc"
)

func (l *permitsLock) run(ctx context.Context, s *redis.Script, lease locks.Lease, ttl time.Duration) (int64, error) {
	asked := lease.Permits
	if asked == 0 {
		asked = semaphorePermits
	}
	keys := []string{lease.Key, sibling(permitLeases, lease.Key), redissonSibling(l.within, permitChannel, lease.Key)}
	return s.Run(ctx, l.client, keys, lease.Token, asked, max(ttl.Milliseconds(), 1), semaphorePermits).Int64()
}

func (l *permitsLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return l.AcquireShare(ctx, key, ttl, 0)
}

// AcquireShare takes the requested number of permits, or none.
func (l *permitsLock) AcquireShare(ctx context.Context, key string, ttl time.Duration, permits int) (locks.Lease,
	error) {
	lease := locks.Lease{Key: key, Token: rand.Text(), Permits: permits}
	call := time.Now()
	return from(lease, call, ttl, granted(l.run(ctx, l.enter, lease, ttl)))
}

func (l *permitsLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	return from(lease, call, ttl, owned(l.run(ctx, permitExtend, lease, ttl)))
}

func (l *permitsLock) Release(ctx context.Context, lease locks.Lease) error {
	return owned(l.run(ctx, l.leave, lease, 0))
}

func (l *permitsLock) Close() error { return nil }
