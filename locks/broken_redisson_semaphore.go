package locks

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var redissonSemaphore = Spec{
	Name:   "redisson-semaphore",
	Doc:    "a semaphore of 4: a number of free permits, less by one for each that is out",
	Source: "Redisson, RSemaphore: its key and channel",
	Sites:  OneSite,
	Broken: "a holder that dies takes its permits with it: no record says whose they are, and no lease ends",
	Expect: []Expectation{{Cause: history.ForeignRelease}, {Cause: history.Stuck}, {Cause: history.Deadlock}},
	Claims: history.Claims{Excludes: true, Cleans: true, Permits: semaphorePermits},
	Open:   func(e Env) (Lock, error) { return &countLock{newPermits(e, countDown, countUp)}, nil },
}

// countLock has no leases.
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

func (l *countLock) AcquireShare(ctx context.Context, key string, ttl time.Duration, permits int) (Lease, error) {
	lease, err := l.permitsLock.AcquireShare(ctx, key, ttl, permits)
	lease.Until = time.Time{}
	return lease, err
}

func (l *countLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	return l.AcquireShare(ctx, key, ttl, 0)
}

// Extend has nothing to do: there is no lease.
func (l *countLock) Extend(_ context.Context, lease Lease, _ time.Duration) (Lease, error) {
	return lease, nil
}
