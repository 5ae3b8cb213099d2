package locks

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var setnxExpire = Spec{
	Name:   "setnx-expire",
	Doc:    "SETNX, then PEXPIRE as a second command",
	Source: "the usual repair of setnx, before SET had NX and PX",
	Sites:  OneSite,
	Broken: "a worker that dies between its two commands leaves a lock that never expires",
	Caught: []Symptom{{"deadlock", "crash-worker@between"}},
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true},
	Open:   func(e Env) (Lock, error) { return &setnxExpireLock{leaseLock{e.Sites[0]}, e}, nil },
}

type setnxExpireLock struct {
	leaseLock
	env Env
}

func (l *setnxExpireLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease := Lease{Key: key, Token: rand.Text()}
	err := l.client.SetArgs(ctx, key, lease.Token, redis.SetArgs{Mode: "NX"}).Err()
	if errors.Is(err, redis.Nil) {
		return lease, ErrBusy
	}
	if err != nil {
		return lease, err
	}
	if err := l.env.between(ctx, key); err != nil {
		return lease, err
	}
	call := time.Now()
	if err := l.client.PExpire(ctx, key, ttl).Err(); err != nil {
		return lease, afterGrant(err)
	}
	lease.Until = until(call, ttl)
	return lease, nil
}
