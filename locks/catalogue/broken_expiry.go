package catalogue

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var bit = locks.Spec{
	Name:   "bit",
	Doc:    "GETBIT, and SETBIT 1 if it was 0; SETBIT 0 to release",
	Source: "answers to \"how do I lock with Redis\": a flag",
	Sites:  locks.OneSite,
	Broken: "reading and setting the flag are two steps: two workers see 0 and both set it; and it never expires",
	Expect: []locks.Expectation{{Cause: history.DoubleGrant, Scenario: "contention"}},
	Claims: history.Claims{Excludes: true},
	Open:   func(e locks.Env) (locks.Lock, error) { return &bitLock{client: e.Sites[0], env: e}, nil },
}

type bitLock struct {
	unending
	client redis.UniversalClient
	env    locks.Env
}

func (l *bitLock) Acquire(ctx context.Context, key string, _ time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key}
	set, err := l.client.GetBit(ctx, key, 0).Result()
	if err != nil {
		return lease, err
	}
	if set == 1 {
		return lease, locks.ErrBusy
	}
	if err := l.env.Between(ctx, key); err != nil {
		return lease, err
	}
	return lease, l.client.SetBit(ctx, key, 0, 1).Err()
}

func (l *bitLock) Release(ctx context.Context, lease locks.Lease) error {
	return l.client.SetBit(ctx, lease.Key, 0, 0).Err()
}

var setnx = locks.Spec{
	Name:   "setnx",
	Doc:    "SETNX to take it, DEL to give it back, no expiry",
	Source: "redis.io, SETNX, before 2.6.12; most first articles on the subject",
	Sites:  locks.OneSite,
	Broken: "never expires: when its holder dies no worker gets the lock again",
	Expect: []locks.Expectation{{Cause: history.Deadlock, Scenario: "crash"}},
	Claims: history.Claims{Excludes: true, Owned: true, Cleans: true},
	Open:   func(e locks.Env) (locks.Lock, error) { return &setnxLock{client: e.Sites[0]}, nil },
}

type setnxLock struct {
	unending
	client redis.UniversalClient
}

func (l *setnxLock) Acquire(ctx context.Context, key string, _ time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: rand.Text()}
	return lease, setNX(ctx, l.client, key, lease.Token, 0)
}

func (l *setnxLock) Release(ctx context.Context, lease locks.Lease) error {
	return deleteAny(ctx, l.client, lease.Key)
}

// deleteAny deletes the key, even if it has another worker's token.
func deleteAny(ctx context.Context, c redis.Cmdable, key string) error {
	return owned(c.Del(ctx, key).Result())
}

var setnxExpire = locks.Spec{
	Name:   "setnx-expire",
	Doc:    "SETNX, then PEXPIRE as a second command",
	Source: "the usual repair of setnx, before SET had NX and PX",
	Sites:  locks.OneSite,
	Broken: "a worker that dies between its two commands leaves a lock that never expires",
	Expect: []locks.Expectation{{Cause: history.Leak}, {Cause: history.Deadlock}, {Cause: history.TTLTooLong}},
	Claims: lease.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return &setnxExpireLock{leaseLock{e.Sites[0]}, e}, nil },
}

type setnxExpireLock struct {
	leaseLock
	env locks.Env
}

func (l *setnxExpireLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	lease, err := l.inTwoSteps(ctx, key, ttl)
	return from(lease, call, ttl, err)
}

// inTwoSteps creates the key with one command and sets its TTL with a second one. The lease counts from the second
// command.
func (l *setnxExpireLock) inTwoSteps(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: rand.Text()}
	if err := setNX(ctx, l.client, key, lease.Token, 0); err != nil {
		return lease, err
	}
	if err := l.env.Between(ctx, key); err != nil {
		return lease, err
	}
	call := time.Now()
	err := locks.AfterGrant(l.client.PExpire(ctx, key, ttl).Err())
	return from(lease, call, ttl, err)
}

var setnxHeal = locks.Spec{
	Name: "setnx-heal",
	Doc: "SETNX, then PEXPIRE; who is refused gives a lock without expiry one, " +
		"so that a crash in between does no harm",
	Source: "Redis in Action 6.2.5, acquire_lock_with_timeout; redis-py issue 818",
	Sites:  locks.OneSite,
	Broken: "a holder that is slow between its commands, not dead, loses the lock meanwhile, " +
		"lengthens its successor's and believes in it",
	Expect: []locks.Expectation{{Cause: history.DoubleGrant}, {Cause: history.OverClaim}},
	Claims: lease.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &setnxHealLock{setnxExpireLock{leaseLock{e.Sites[0]}, e}}, nil
	},
}

type setnxHealLock struct{ setnxExpireLock }

func (l *setnxHealLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := l.inTwoSteps(ctx, key, ttl)
	if !errors.Is(err, locks.ErrBusy) {
		return lease, err
	}
	if left, why := l.client.PTTL(ctx, key).Result(); why != nil || left != -1 {
		return lease, err
	}
	l.client.PExpire(ctx, key, ttl) // an error does not matter: the next refused worker tries again
	return lease, err
}

var expireSeconds = locks.Spec{
	Name:   "expire-seconds",
	Doc:    "SETNX and EXPIRE in one script, the lease rounded down to seconds",
	Source: "wrappers that take milliseconds and pass on ttl/1000",
	Sites:  locks.OneSite,
	Broken: "EXPIRE 0 deletes the key: a lease under one second is no lock, and others end up to a second early",
	Expect: []locks.Expectation{{Cause: history.DoubleGrant}, {Cause: history.OverClaim}},
	Claims: lease.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return &expireSecondsLock{leaseLock{e.Sites[0]}}, nil },
}

type expireSecondsLock struct{ leaseLock }

var setAndExpire = redis.NewScript(
	`if redis.call("SETNX", KEYS[1], ARGV[1]) == 0 then return 0 end redis.call("EXPIRE", KEYS[1], ARGV[2]) return 1`)

func (l *expireSecondsLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	err := granted(setAndExpire.Run(ctx, l.client, []string{key}, lease.Token, ttl.Milliseconds()/1000).Int64())
	return from(lease, call, ttl, err)
}

var clearedTTL = locks.Spec{
	Name:   "cleared-ttl",
	Doc:    "GETSET: who finds nothing there has the lock and sets its expiry; DEL to release",
	Source: "redis-semaphore (Ruby) issue 23, simple_mutex",
	Sites:  locks.OneSite,
	Broken: "GETSET clears the expiry, also if the caller is refused: a holder that dies after that is never replaced",
	Expect: []locks.Expectation{{Cause: history.Phantom}, {Cause: history.Leak}, {Cause: history.Deadlock},
		{Cause: history.TTLTooLong}, {Cause: history.SilentReacquire}},
	Claims: history.Claims{Excludes: true, Expires: true, Cleans: true},
	Open:   func(e locks.Env) (locks.Lock, error) { return &clearedTTLLock{blindLock{leaseLock{e.Sites[0]}}}, nil },
}

type clearedTTLLock struct{ blindLock }

func (l *clearedTTLLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	err := l.client.SetArgs(ctx, key, lease.Token, redis.SetArgs{Get: true}).Err()
	if err == nil {
		return lease, locks.ErrBusy
	}
	if !errors.Is(err, redis.Nil) {
		return lease, err
	}
	err = locks.AfterGrant(l.client.PExpire(ctx, key, ttl).Err())
	return from(lease, call, ttl, err)
}

func (l *clearedTTLLock) Release(ctx context.Context, lease locks.Lease) error {
	return deleteAny(ctx, l.client, lease.Key)
}

var timestamp = locks.Spec{
	Name:   "timestamp",
	Doc:    "SETNX of a deadline by the client's clock; who finds it passed takes over by GETSET; DEL to release",
	Source: "redis.io, SETNX: \"Design pattern: Locking with SETNX\"",
	Sites:  locks.OneSite,
	Broken: "the late holder's DEL takes the lock from its successor; losers of a takeover move the winner's " +
		"deadline, and an extension overwrites what is there",
	Expect: []locks.Expectation{{Cause: history.ForeignRelease}, {Cause: history.SilentReacquire}},
	Claims: lease.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return &timestampLock{leaseLock{e.Sites[0]}, e, getSet}, nil },
}

// timestampLock stores the end of the lease as the value of the key. This time is also the holder's token.
type timestampLock struct {
	leaseLock
	env locks.Env
	// takeOver replaces an expired deadline by the caller's. It returns false if another worker was faster.
	takeOver func(ctx context.Context, c redis.UniversalClient, key, seen, deadline string) (bool, error)
}

func (l *timestampLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	end := time.Now().Add(ttl)
	lease := locks.Lease{Key: key, Token: deadline(end)}
	err := setNX(ctx, l.client, key, lease.Token, 0)
	if errors.Is(err, locks.ErrBusy) {
		err = l.replace(ctx, key, lease.Token)
	}
	if err == nil {
		lease.Until = end
	}
	return lease, err
}

func (l *timestampLock) replace(ctx context.Context, key, token string) error {
	seen, err := l.client.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) || err == nil && !passed(seen) {
		return locks.ErrBusy // held, or released just now; an Acquire makes only one try
	}
	if err != nil {
		return err
	}
	if err := l.env.Between(ctx, key); err != nil {
		return err
	}
	ours, err := l.takeOver(ctx, l.client, key, seen, token)
	if err == nil && !ours {
		return locks.ErrBusy
	}
	return err
}

// getSet stores the caller's deadline. It returns false if the old value is not the deadline seen: another worker
// was faster.
func getSet(ctx context.Context, c redis.UniversalClient, key, seen, deadline string) (bool, error) {
	old, err := c.SetArgs(ctx, key, deadline, redis.SetArgs{Get: true}).Result()
	if errors.Is(err, redis.Nil) {
		return true, nil
	}
	return old == seen, err
}

func (l *timestampLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	end := time.Now().Add(ttl)
	if err := l.client.Set(ctx, lease.Key, deadline(end), 0).Err(); err != nil {
		return lease, err
	}
	lease.Until = end
	return lease, nil
}

func (l *timestampLock) Release(ctx context.Context, lease locks.Lease) error {
	return deleteAny(ctx, l.client, lease.Key)
}

func deadline(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func passed(deadline string) bool {
	n, err := strconv.ParseInt(deadline, 10, 64)
	return err == nil && time.Now().UnixNano() > n
}

var timestampDel = locks.Spec{
	Name:   "timestamp-del",
	Doc:    "timestamp, but who finds the deadline passed deletes the key and begins anew with SETNX",
	Source: "redis.io, SETNX: the takeover that its text warns of",
	Sites:  locks.OneSite,
	Broken: "two workers see the same dead lock; the slower one deletes what the faster one has just taken; " +
		"and an extension overwrites what is there",
	Expect: []locks.Expectation{{Cause: history.ForeignRelease}, {Cause: history.DoubleGrant},
		{Cause: history.SilentReacquire}},
	Claims: lease.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &timestampLock{leaseLock{e.Sites[0]}, e, deleteAndSet}, nil
	},
}

func deleteAndSet(ctx context.Context, c redis.UniversalClient, key, _, deadline string) (bool, error) {
	if err := c.Del(ctx, key).Err(); err != nil {
		return false, err
	}
	err := setNX(ctx, c, key, deadline, 0)
	if errors.Is(err, locks.ErrBusy) {
		return false, nil
	}
	return err == nil, err
}
