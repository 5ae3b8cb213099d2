package locks

import (
	"context"
	"crypto/rand"
	"time"

	"hammerlock/history"
)

var reentryRetakes = Spec{
	Name:   "reentry-retakes",
	Doc:    "reentrant lease: the server is asked each time, and lets in whose token it has, or anybody if it has none",
	Source: "go-zero redislock; its pull requests 1704 and 4319 on what a second Acquire means",
	Sites:  OneSite,
	Broken: "a re-entry whose outer hold has expired takes the lock anew: another worker may have had it meanwhile, and the outer hold goes on",
	Expect: []Expectation{{Cause: history.SilentReacquire}},
	Claims: reentrant.Claims,
	Open: func(e Env) (Lock, error) {
		return &retakesLock{localReentryLock{leaseLock{e.Sites[0]}, map[string]Lease{}}}, nil
	},
}

type retakesLock struct{ localReentryLock }

// Acquire uses that obtain answers 1 to whose token is there.
func (l *retakesLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease, inside := l.held[key]
	if !inside {
		lease = Lease{Key: key, Token: rand.Text()}
	}
	lease.Count++
	call := time.Now()
	err := granted(obtain.Run(ctx, l.client, []string{key}, lease.Token, ttl.Milliseconds()).Int64())
	lease, err = lease.from(call, ttl, err)
	if err == nil {
		l.held[key] = lease
	}
	return lease, err
}
