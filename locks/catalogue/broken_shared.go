package catalogue

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var upgradeDrops = locks.Spec{
	Name:   "upgrade-drops",
	Doc:    "read-write whose upgrade gives the reader's hold back and waits until it can be the writer",
	Source: "java.util.concurrent, ReentrantReadWriteLock: upgrading is not possible, so users unlock and lock again",
	Sites:  locks.OneSite,
	Broken: "others write between the two steps: what the reader has seen is old when it becomes the writer",
	Expect: []locks.Expectation{{Cause: history.DoubleGrant, Scenario: "upgrade"},
		{Cause: history.Exclusion, Scenario: "upgrade"}},
	Claims: readWrite.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return &upgradeDropsLock{newReadWrite(e, readEnter)}, nil },
}

type upgradeDropsLock struct{ *readWriteLock }

func (l *upgradeDropsLock) Upgrade(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	if err := l.Release(ctx, lease); err != nil {
		return lease, err
	}
	over, cancel := context.WithTimeout(ctx, ttl)
	defer cancel()
	for {
		writer, err := l.Acquire(ctx, lease.Key, ttl)
		if !errors.Is(err, locks.ErrBusy) {
			return writer, locks.AfterGrant(err)
		}
		if _, err := l.Wait(over, lease.Key); err != nil || over.Err() != nil {
			return lease, locks.ErrLost
		}
	}
}

var permitTwice = locks.Spec{
	Name:   "permit-twice",
	Doc:    "redisson-permits that counts a permit that is returned without a look whether it is still out",
	Source: "Redisson, RPermitExpirableSemaphore, without the look whether the permit is still out",
	Sites:  locks.OneSite,
	Broken: "a permit whose lease was over comes back twice, by its expiry and from its late holder: " +
		"there is one too many from then on",
	Expect: []locks.Expectation{{Cause: history.ForeignRelease}, {Cause: history.DoubleGrant}},
	Claims: redissonPermits.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return newPermits(e, permitTake, returnAnyway), nil },
}

var returnAnyway = redis.NewScript(permitNow + reclaim + `
for i = 1, asked do redis.call("ZREM", KEYS[2], ARGV[1] .. ":" .. i) end
redis.call("INCRBY", KEYS[1], asked)
redis.call("PUBLISH", KEYS[3], asked)
return 1`)

var permitKept = locks.Spec{
	Name:   "permit-kept",
	Doc:    "redisson-permits that does not count what has expired as free",
	Source: "Redisson, RPermitExpirableSemaphore, without the step that gives expired permits back",
	Sites:  locks.OneSite,
	Broken: "the permit of a holder that died stays out for ever, though its lease is over",
	Expect: []locks.Expectation{{Cause: history.Stuck}, {Cause: history.Deadlock}, {Cause: history.FalseRelease}},
	Claims: redissonPermits.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return newPermits(e, takeOnly, returnOnly), nil },
}

var (
	takeOnly   = redis.NewScript(permitNow + taking)
	returnOnly = redis.NewScript(permitNow + giveBack)
)

var permitAge = locks.Spec{
	Name:   "permit-age",
	Doc:    "a semaphore of 4: a set of the permits that are out with the time at which each was taken",
	Source: "Carlson, Redis in Action, chapter 6.3.1: acquire_semaphore with a timeout",
	Sites:  locks.OneSite,
	Broken: "a caller drops the permits that are older than its own lease, also those with a longer one",
	Expect: []locks.Expectation{{Cause: history.DoubleGrant, Scenario: "two-leases"}},
	Claims: history.Claims{Excludes: true, Expires: true, Permits: semaphorePermits},
	Open: func(e locks.Env) (locks.Lock, error) {
		return &permitAgeLock{newPermits(e, takeByAge, leaveByAge)}, nil
	},
}

type permitAgeLock struct{ *permitsLock }

const markAge = `
for i = 1, asked do redis.call("ZADD", KEYS[2], now, ARGV[1] .. ":" .. i) end
return 1`

var (
	takeByAge = redis.NewScript(permitNow + `
redis.call("ZREMRANGEBYSCORE", KEYS[2], "-inf", now - ARGV[3])
if redis.call("ZCARD", KEYS[2]) + asked > tonumber(ARGV[4]) then return 0 end` + markAge)
	extendByAge = redis.NewScript(permitNow + `
if not redis.call("ZSCORE", KEYS[2], ARGV[1] .. ":1") then return 0 end` + markAge)
	leaveByAge = redis.NewScript(permitNow + `
local back = 0
for i = 1, asked do back = back + redis.call("ZREM", KEYS[2], ARGV[1] .. ":" .. i) end
return math.min(back, 1)`)
)

func (l *permitAgeLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	return from(lease, call, ttl, owned(l.run(ctx, extendByAge, lease, ttl)))
}

var readersFirst = locks.Spec{
	Name:   "readers-first",
	Doc:    "read-write that grants the lock to every reader who comes while there are readers",
	Source: "Courtois, Heymans, Parnas (1971): the first problem, of which they say that writers may starve",
	Sites:  locks.OneSite,
	Broken: "while readers come and go, and one is always there, a writer waits for ever",
	Expect: []locks.Expectation{{Cause: history.Starved, Scenario: "steady-readers"}},
	Claims: readWrite.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return newReadWrite(e, readFirst), nil },
}

var readFirst = redis.NewScript(serverNow + `
if redis.call("EXISTS", KEYS[1]) == 1 then return 0 end` + addReader)

var readersExpiry = locks.Spec{
	Name:   "readers-expiry",
	Doc:    "redisson-rw whose first reader sets the lease of all",
	Source: "a counter of readers with INCR, and EXPIRE when it is 1: the usual recipe",
	Sites:  locks.OneSite,
	Broken: "when the first reader's lease is over a writer is granted the lock, though those of later readers run",
	Expect: []locks.Expectation{{Cause: history.DoubleGrant, Scenario: "steady-readers"}},
	Claims: history.Claims{Excludes: true, Expires: true, Readers: true},
	Open:   func(e locks.Env) (locks.Lock, error) { return newRedissonRW(e, readFirstLease, leaveAsLast), nil },
}

var (
	readFirstLease = redis.NewScript(`
local mode = redis.call("HGET", KEYS[1], "mode")
if mode == "write" then return 0 end
redis.call("HSET", KEYS[1], "mode", "read", ARGV[1], 1)
redis.call("SET", KEYS[2], 1, "PX", ARGV[2])
if not mode then redis.call("PEXPIRE", KEYS[1], ARGV[2]) end
return 1`)
	leaveAsLast = redis.NewScript(`
redis.call("DEL", KEYS[2])
if redis.call("HDEL", KEYS[1], ARGV[1]) == 0 then return 0 end
if redis.call("HLEN", KEYS[1]) == 1 then redis.call("DEL", KEYS[1]) end
return 1`)
)

var redissonSemaphore = locks.Spec{
	Name:   "redisson-semaphore",
	Doc:    "a semaphore of 4: a number of free permits, less by one for each that is out",
	Source: "Redisson, RSemaphore: its key and channel",
	Sites:  locks.OneSite,
	Broken: "a holder that dies takes its permits with it: no record says whose they are, and no lease ends",
	Expect: []locks.Expectation{{Cause: history.ForeignRelease}, {Cause: history.Stuck}, {Cause: history.Deadlock}},
	Claims: history.Claims{Excludes: true, Cleans: true, Permits: semaphorePermits},
	Open:   func(e locks.Env) (locks.Lock, error) { return &countLock{newPermits(e, countDown, countUp)}, nil },
}

// countLock is a semaphore whose permits never expire.
type countLock struct{ *permitsLock }

var (
	countDown = redis.NewScript(`
local asked = tonumber(ARGV[2])
if redis.call("EXISTS", KEYS[1]) == 0 then redis.call("SET", KEYS[1], ARGV[4]) end
if tonumber(redis.call("GET", KEYS[1])) < asked then return 0 end
redis.call("DECRBY", KEYS[1], asked)
return 1`)
	countUp = redis.NewScript(`
redis.call("INCRBY", KEYS[1], ARGV[2])
redis.call("PUBLISH", KEYS[3], ARGV[2])
return 1`)
)

func (l *countLock) AcquireShare(ctx context.Context, key string, ttl time.Duration, permits int) (locks.Lease, error) {
	lease, err := l.permitsLock.AcquireShare(ctx, key, ttl, permits)
	lease.Until = time.Time{}
	return lease, err
}

func (l *countLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return l.AcquireShare(ctx, key, ttl, 0)
}

func (l *countLock) Extend(_ context.Context, lease locks.Lease, _ time.Duration) (locks.Lease, error) {
	return lease, nil
}
