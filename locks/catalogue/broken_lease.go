package catalogue

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var replyValidity = locks.Spec{
	Name:   "reply-validity",
	Doc:    "lease, believed in for the whole TTL from the reply on",
	Source: "clients that note time.Now() after the call returns",
	Sites:  locks.OneSite,
	Broken: "the server's lease began before the reply: its holder believes too long, " +
		"by the reply's delay and the drift",
	Expect: []locks.Expectation{{Cause: history.OverClaim}},
	Claims: lease.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return &replyValidityLock{leaseLock{e.Sites[0]}}, nil },
}

type replyValidityLock struct{ leaseLock }

func (l *replyValidityLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := l.leaseLock.Acquire(ctx, key, ttl)
	if err == nil {
		lease.Until = time.Now().Add(ttl)
	}
	return lease, err
}

func (l *replyValidityLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	lease, err := l.leaseLock.Extend(ctx, lease, ttl)
	if err == nil {
		lease.Until = time.Now().Add(ttl)
	}
	return lease, err
}

var extendOverwrites = locks.Spec{
	Name:   "extend-overwrites",
	Doc:    "lease, extended by SET XX PX: the key must be there",
	Source: "ShedLock pull requests 2584 and 2593, its Redis providers until then",
	Sites:  locks.OneSite,
	Broken: "that the key is there does not say whose it is: an extension that comes late takes the " +
		"lock from its new holder",
	Expect: []locks.Expectation{{Cause: history.SilentReacquire}, {Cause: history.DoubleGrant}},
	Claims: lease.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return &overwriteLock{leaseLock{e.Sites[0]}}, nil },
}

type overwriteLock struct{ leaseLock }

func (l *overwriteLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	err := l.client.SetArgs(ctx, lease.Key, lease.Token, redis.SetArgs{Mode: "XX", TTL: ttl}).Err()
	if errors.Is(err, redis.Nil) {
		err = locks.ErrLost
	}
	return from(lease, call, ttl, err)
}

var fenceAfter = locks.Spec{
	Name:   "fence-after",
	Doc:    "lease, with a fencing token drawn by INCR as a second command",
	Source: "locks to which fencing was added from outside",
	Sites:  locks.OneSite,
	Broken: "who is slow between the two commands draws a greater token than the one who got the lock after it",
	Expect: []locks.Expectation{{Cause: history.Regressed, Scenario: "slow-fence"}},
	Claims: fenced.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return &fenceAfterLock{leaseLock{e.Sites[0]}, e}, nil },
}

type fenceAfterLock struct {
	leaseLock
	env locks.Env
}

func (l *fenceAfterLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := l.leaseLock.Acquire(ctx, key, ttl)
	if err != nil {
		return lease, err
	}
	if err := l.env.Between(ctx, key); err != nil {
		return lease, err
	}
	if lease.Fence, err = l.client.Incr(ctx, fenceKey(key)).Result(); err != nil {
		return lease, locks.AfterGrant(err)
	}
	return lease, nil
}

var retriedSetNX = locks.Spec{
	Name:   "retried-setnx",
	Doc:    "lease from a client that sends a command again if the connection failed under it",
	Source: "go-redis issue 2985 and pull request 1121, MaxRetries",
	Sites:  locks.OneSite,
	Broken: "SET NX is not repeatable: the second one finds the key of the first, and the lock is refused although " +
		"no other worker has it",
	Expect: []locks.Expectation{{Cause: history.Phantom, Scenario: "ambiguous"}},
	Claims: lease.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return &retriedLock{leaseLock{e.Sites[0]}}, nil },
}

type retriedLock struct{ leaseLock }

const clientTries = 3

func (l *retriedLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := l.leaseLock.Acquire(ctx, key, ttl)
	for range clientTries - 1 {
		if outcome, _ := locks.Classify(err); outcome != history.Unknown {
			break
		}
		lease, err = l.take(ctx, lease, ttl)
	}
	return lease, err
}

var ownAge = locks.Spec{
	Name: "own-age",
	Doc: "a token and the time of its grant by the server's clock; who finds it older than its own " +
		"lease takes the lock over",
	Source: "colinmollenhour/php-redis-session-abstract: break_after, which each kind of client has of its own",
	Sites:  locks.OneSite,
	Broken: "a waiter goes by its own lease, not by the holder's: one that is configured with a shorter lease takes " +
		"the lock of one with a longer",
	Expect: []locks.Expectation{{Cause: history.DoubleGrant, Scenario: "two-leases"},
		{Cause: history.PrematureLoss, Scenario: "two-leases"},
		{Cause: history.ForeignRelease, Scenario: "two-leases"}},
	Claims: lease.Claims,
	Shared: true,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &pairLock{leaseLock{e.Sites[0]}, "since", takeIfOld, makeYoung, forgetAge}, nil
	},
}

// KEYS of these scripts: the lock and the time of its grant. ARGV: the token and the lease in ms.
var (
	takeIfOld = redis.NewScript(serverTime + `
local since = redis.call("GET", KEYS[2])
if redis.call("EXISTS", KEYS[1]) == 1 and since and now - since < tonumber(ARGV[2]) then return 0 end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
redis.call("SET", KEYS[2], now, "PX", ARGV[2])
return 1`)
	makeYoung = redis.NewScript(serverTime + `
if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
redis.call("PEXPIRE", KEYS[1], ARGV[2])
redis.call("SET", KEYS[2], now, "PX", ARGV[2])
return 1`)
	forgetAge = redis.NewScript(`
if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call("DEL", KEYS[1], KEYS[2])`)
)

var reaper = locks.Spec{
	Name:   "reaper",
	Doc:    "lease with a sign of life beside it, so that the lock of a dead holder is free before its lease is over",
	Source: "sidekiq-unique-jobs issues 488, 559 and 779, the reaper of orphaned locks",
	Sites:  locks.OneSite,
	Broken: "a holder gives a sign only when it acquires or extends: one that works for half a lease is taken for dead",
	Expect: []locks.Expectation{{Cause: history.DoubleGrant, Scenario: "late-holder"}},
	Claims: lease.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &pairLock{leaseLock{e.Sites[0]}, "alive", takeFromDead, stayAlive, leaveClean}, nil
	},
}

// pairLock uses two keys: the lock and a second one. Both are the KEYS of its scripts. ARGV: the token, the lease
// and half of the lease, both in ms.
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

func (l *pairLock) run(ctx context.Context, s *redis.Script, lease locks.Lease, ttl time.Duration) (int64, error) {
	keys := []string{lease.Key, sibling(l.beside, lease.Key)}
	return s.Run(ctx, l.client, keys, lease.Token, ttl.Milliseconds(), max((ttl/2).Milliseconds(), 1)).Int64()
}

func (l *pairLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	return from(lease, call, ttl, granted(l.run(ctx, l.enter, lease, ttl)))
}

func (l *pairLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	return from(lease, call, ttl, owned(l.run(ctx, l.stay, lease, ttl)))
}

func (l *pairLock) Release(ctx context.Context, lease locks.Lease) error {
	return owned(l.run(ctx, l.leave, lease, 0))
}

var zsetRank = locks.Spec{
	Name: "zset-rank",
	Doc: "a sorted set of tokens by the time at which they came: the first one has the lock, " +
		"others take theirs out again",
	Source: "Redis in Action 6.3.1, the basic counting semaphore, for one",
	Sites:  locks.OneSite,
	Broken: "a time that was read earlier sorts before one that was written earlier: " +
		"who is slow in between gets a lock that is held",
	Expect: []locks.Expectation{{Cause: history.DoubleGrant}},
	Claims: lease.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return &zsetLock{leaseLock{e.Sites[0]}, e}, nil },
}

type zsetLock struct {
	leaseLock
	env locks.Env
}

func (l *zsetLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: rand.Text()}
	now := time.Now()
	if err := l.env.Between(ctx, key); err != nil {
		return lease, err
	}
	var rank *redis.IntCmd
	_, err := l.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.ZRemRangeByScore(ctx, key, "-inf", strconv.FormatInt(now.Add(-ttl).UnixMicro(), 10))
		p.ZAdd(ctx, key, redis.Z{Score: float64(now.UnixMicro()), Member: lease.Token})
		rank = p.ZRank(ctx, key, lease.Token)
		return nil
	})
	if err == nil && rank.Val() > 0 {
		if err := l.client.ZRem(ctx, key, lease.Token).Err(); err != nil {
			return lease, locks.AfterGrant(err) // the outcome is unknown: the token may still be in the set
		}
		return lease, locks.ErrBusy
	}
	return from(lease, now, ttl, err)
}

func (l *zsetLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	now := time.Now()
	z := redis.Z{Score: float64(now.UnixMicro()), Member: lease.Token}
	err := owned(l.client.ZAddArgs(ctx, lease.Key, redis.ZAddArgs{XX: true, Ch: true, Members: []redis.Z{z}}).Result())
	return from(lease, now, ttl, err)
}

func (l *zsetLock) Release(ctx context.Context, lease locks.Lease) error {
	return owned(l.client.ZRem(ctx, lease.Key, lease.Token).Result())
}

var libRedsyncSetNX = locks.Spec{
	Name:   "redsync-setnx-extend",
	Doc:    "redsync whose extension sets the key where it is gone (WithSetNXOnExtend)",
	Source: "github.com/go-redsync/redsync/v4 v4.18.1; docs/FINDINGS.md",
	Sites:  locks.ManySites,
	Broken: "a hold that is over comes back to life: another worker may have had the lock meanwhile, " +
		"and no holder hears of it",
	Expect: []locks.Expectation{{Cause: history.SilentReacquire}},
	Claims: libRedsync.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return newRedsync(e, redsync.WithSetNXOnExtend()), nil },
}
