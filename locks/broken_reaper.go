package locks

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var reaper = Spec{
	Name:   "reaper",
	Doc:    "lease with a sign of life beside it, so that the lock of a dead holder is free before its lease is over",
	Source: "sidekiq-unique-jobs issues 488, 559 and 779, the reaper of orphaned locks",
	Sites:  OneSite,
	Broken: "a holder gives a sign only when it acquires or extends: one that works for half a lease is taken for dead",
	Expect: []Expectation{{Cause: history.DoubleGrant, Scenario: "late-holder"}},
	Claims: lease.Claims,
	Open: func(e Env) (Lock, error) {
		return &pairLock{leaseLock{e.Sites[0]}, "alive", takeFromDead, stayAlive, leaveClean}, nil
	},
}

// pairLock is a key and another one beside it. Its scripts have both; a token, a lease and half of that.
type pairLock struct {
	leaseLock
	beside             string
	enter, stay, leave *redis.Script
}

var (
	takeFromDead = redis.NewScript(`
if redis.call("EXISTS", KEYS[1]) == 1 and redis.call("EXISTS", KEYS[2]) == 1 then return 0 end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
redis.call("SET", KEYS[2], ARGV[1], "PX", ARGV[3])
return 1`)
	stayAlive = redis.NewScript(`
if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
redis.call("SET", KEYS[2], ARGV[1], "PX", ARGV[3])
return redis.call("PEXPIRE", KEYS[1], ARGV[2])`)
	leaveClean = redis.NewScript(`
if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
redis.call("DEL", KEYS[2])
return redis.call("DEL", KEYS[1])`)
)

func (l *pairLock) run(ctx context.Context, s *redis.Script, lease Lease, ttl time.Duration) (int64, error) {
	keys := []string{lease.Key, sibling(l.beside, lease.Key)}
	return s.Run(ctx, l.client, keys, lease.Token, ttl.Milliseconds(), max((ttl/2).Milliseconds(), 1)).Int64()
}

func (l *pairLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease := Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	return lease.from(call, ttl, granted(l.run(ctx, l.enter, lease, ttl)))
}

func (l *pairLock) Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	call := time.Now()
	return lease.from(call, ttl, owned(l.run(ctx, l.stay, lease, ttl)))
}

func (l *pairLock) Release(ctx context.Context, lease Lease) error {
	return owned(l.run(ctx, l.leave, lease, 0))
}
