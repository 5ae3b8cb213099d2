package locks

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var expireSeconds = Spec{
	Name:   "expire-seconds",
	Doc:    "SETNX and EXPIRE in one script, the lease rounded down to seconds",
	Source: "wrappers that take milliseconds and pass on ttl/1000",
	Sites:  OneSite,
	Broken: "EXPIRE 0 deletes the key: a lease under one second is no lock, and others end up to a second early",
	Expect: []Expectation{{Cause: history.DoubleGrant}, {Cause: history.OverClaim}},
	Claims: lease.Claims,
	Open:   func(e Env) (Lock, error) { return &expireSecondsLock{leaseLock{e.Sites[0]}}, nil },
}

type expireSecondsLock struct{ leaseLock }

var setAndExpire = redis.NewScript(
	`if redis.call("SETNX", KEYS[1], ARGV[1]) == 0 then return 0 end redis.call("EXPIRE", KEYS[1], ARGV[2]) return 1`)

func (l *expireSecondsLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease := Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	err := granted(setAndExpire.Run(ctx, l.client, []string{key}, lease.Token, ttl.Milliseconds()/1000).Int64())
	return lease.from(call, ttl, err)
}
