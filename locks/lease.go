package locks

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var lease = Spec{
	Name:    "lease",
	Doc:     "SET NX PX with a unique token; released and extended by a script that compares it",
	Source:  "redis.io, SET: patterns; redis.io, Distributed Locks with Redis: a single instance",
	Sites:   OneSite,
	Assumes: "the server keeps its keys and its clock for the lease; the holder is done before Until",
	Claims:  history.Claims{Excludes: true, Expires: true, Owned: true},
	Open:    func(e Env) (Lock, error) { return &leaseLock{e.Sites[0]}, nil },
}

type leaseLock struct{ client redis.UniversalClient }

func (l *leaseLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease := Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	if err := setNX(ctx, l.client, key, lease.Token, ttl); err != nil {
		return lease, err
	}
	lease.Until = until(call, ttl)
	return lease, nil
}

func (l *leaseLock) Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	call := time.Now()
	if err := extendOwned(ctx, l.client, lease.Key, lease.Token, ttl); err != nil {
		return lease, err
	}
	lease.Until = until(call, ttl)
	return lease, nil
}

func (l *leaseLock) Release(ctx context.Context, lease Lease) error {
	return deleteOwned(ctx, l.client, lease.Key, lease.Token)
}

func (l *leaseLock) Close() error { return nil }

// setNX sets the key to the token if nobody has it.
func setNX(ctx context.Context, c redis.Cmdable, key, token string, ttl time.Duration) error {
	err := c.SetArgs(ctx, key, token, redis.SetArgs{Mode: "NX", TTL: ttl}).Err()
	if errors.Is(err, redis.Nil) {
		return ErrBusy
	}
	return err
}

var (
	compareAndDelete = redis.NewScript(
		`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)
	compareAndExpire = redis.NewScript(
		`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) end return 0`)
)

// deleteOwned deletes the key if it holds the token.
func deleteOwned(ctx context.Context, c redis.Scripter, key, token string) error {
	return owned(compareAndDelete.Run(ctx, c, []string{key}, token))
}

// extendOwned gives the key a new time to live if it holds the token.
func extendOwned(ctx context.Context, c redis.Scripter, key, token string, ttl time.Duration) error {
	return owned(compareAndExpire.Run(ctx, c, []string{key}, token, ttl.Milliseconds()))
}

// owned reads the reply of a script that answers 0 if the key was not ours.
func owned(cmd *redis.Cmd) error {
	n, err := cmd.Int()
	if err == nil && n == 0 {
		return ErrLost
	}
	return err
}
