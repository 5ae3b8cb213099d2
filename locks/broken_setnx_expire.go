package locks

import (
	"context"
	"crypto/rand"
	"time"

	"hammerlock/history"
)

var setnxExpire = Spec{
	Name:   "setnx-expire",
	Doc:    "SETNX, then PEXPIRE as a second command",
	Source: "the usual repair of setnx, before SET had NX and PX",
	Sites:  OneSite,
	Broken: "a worker that dies between its two commands leaves a lock that never expires",
	Expect: []Expectation{{Cause: history.Leak}, {Cause: history.Deadlock}},
	Claims: lease.Claims,
	Open:   func(e Env) (Lock, error) { return &setnxExpireLock{leaseLock{e.Sites[0]}, e}, nil },
}

type setnxExpireLock struct {
	leaseLock
	env Env
}

func (l *setnxExpireLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	call := time.Now()
	lease, err := l.inTwoSteps(ctx, key, ttl)
	return lease.from(call, ttl, err)
}

// inTwoSteps counts the lease from the second step.
func (l *setnxExpireLock) inTwoSteps(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease := Lease{Key: key, Token: rand.Text()}
	if err := setNX(ctx, l.client, key, lease.Token, 0); err != nil {
		return lease, err
	}
	if err := l.env.between(ctx, key); err != nil {
		return lease, err
	}
	call := time.Now()
	err := AfterGrant(l.client.PExpire(ctx, key, ttl).Err())
	return lease.from(call, ttl, err)
}
