package catalogue

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var lease = locks.Spec{
	Name:    "lease",
	Doc:     "SET NX PX with a unique token; released and extended by a script that compares it",
	Source:  "redis.io, SET: patterns; redis.io, Distributed Locks with Redis: a single instance",
	Sites:   locks.OneSite,
	Assumes: keepsKeys + doneInTime,
	Expect: []locks.Expectation{
		{Cause: history.ServiceLoss, Fault: "restart-empty"},
		{Cause: history.ServiceLoss, Fault: "lost-grant"},
		{Cause: history.Overrun, Fault: "stall-worker"},
	},
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true},
	Shared: true,
	Open:   func(e locks.Env) (locks.Lock, error) { return &leaseLock{e.Sites[0]}, nil },
}

type leaseLock struct{ client redis.UniversalClient }

func (l *leaseLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return l.take(ctx, locks.Lease{Key: key, Token: rand.Text()}, ttl)
}

func (l *leaseLock) take(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	err := setNX(ctx, l.client, lease.Key, lease.Token, ttl)
	return from(lease, call, ttl, err)
}

func (l *leaseLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	err := extendOwned(ctx, l.client, lease.Key, lease.Token, ttl)
	return from(lease, call, ttl, err)
}

func (l *leaseLock) Release(ctx context.Context, lease locks.Lease) error {
	return deleteOwned(ctx, l.client, lease.Key, lease.Token)
}

func (l *leaseLock) Close() error { return nil }

// setNX sets the key to the token, or returns ErrBusy if the key exists. With ttl 0 the key never expires.
func setNX(ctx context.Context, c sender, key, token string, ttl time.Duration) error {
	args := []any{"set", key, token, "nx", "px", max(ttl.Milliseconds(), 1)}
	if ttl == 0 {
		args = args[:4]
	}
	err := c.Process(ctx, redis.NewStatusCmd(ctx, args...))
	if errors.Is(err, redis.Nil) {
		return locks.ErrBusy
	}
	return err
}

// sender is a client or a single connection. Every visit sends the commands of this file, so they are built by hand:
// the library's functions take 1.5 to 2 times as long (BenchmarkCommand).
type sender interface {
	redis.Scripter
	Process(ctx context.Context, cmd redis.Cmder) error
}

// ownedScript is a script that changes a key only if its value is the token, the script's first argument. It returns
// 0 for any other value.
type ownedScript struct {
	*redis.Script
	digest any
}

func newOwnedScript(text string) ownedScript {
	s := redis.NewScript(text)
	return ownedScript{s, s.Hash()}
}

var (
	compareAndDelete = newOwnedScript(
		`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)
	compareAndExpire = newOwnedScript(
		`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) end return 0`)
)

// run sends the command evalsha, which is EVALSHA digest 1 key token ... If the server does not know the digest, run
// sends the text of the script.
func (s ownedScript) run(ctx context.Context, c sender, evalsha []any) error {
	cmd := redis.NewCmd(ctx, evalsha...)
	if err := c.Process(ctx, cmd); redis.HasErrorPrefix(err, "NOSCRIPT") {
		return owned(s.Eval(ctx, c, []string{evalsha[3].(string)}, evalsha[4:]...).Int64())
	}
	return owned(cmd.Int64())
}

func deleteOwned(ctx context.Context, c sender, key, token string) error {
	s := compareAndDelete
	return s.run(ctx, c, []any{"evalsha", s.digest, 1, key, token})
}

func extendOwned(ctx context.Context, c sender, key, token string, ttl time.Duration) error {
	s := compareAndExpire
	return s.run(ctx, c, []any{"evalsha", s.digest, 1, key, token, ttl.Milliseconds()})
}

// owned converts the result of a script: 0 means that the caller did not hold the lock any more, so it returns
// ErrLost.
func owned(n int64, err error) error {
	if err == nil && n == 0 {
		return locks.ErrLost
	}
	return err
}

// granted converts the result of a script: 0 means that another worker holds the lock, so it returns ErrBusy.
func granted(n int64, err error) error {
	if err == nil && n == 0 {
		return locks.ErrBusy
	}
	return err
}
