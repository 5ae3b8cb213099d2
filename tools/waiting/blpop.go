package main

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/tools/kept"
)

// blpop is an upper bound for locks in the server: workers pop and push a list's element, and the server queues the
// blocked clients. It is no lock: it has no lease, fence or owner.
var blpop = locks.Spec{
	Name: kept.Bound, Doc: "an element of a list: BLPOP, RPUSH", Source: "redis.io, BLPOP", Sites: locks.OneSite,
	Assumes: "no holder dies",
	Claims:  history.Claims{Excludes: true},
	Open: func(e locks.Env) (locks.Lock, error) {
		return &blpopLock{client: e.Sites[0], made: map[string]bool{}}, nil
	},
}

// withBound is the catalogue of this program and of its worker processes.
var withBound = append(known.Locks[:len(known.Locks):len(known.Locks)], blpop)

func find(name string) (locks.Spec, bool) {
	if name == kept.Bound {
		return blpop, true
	}
	return known.Find(name)
}

type blpopLock struct {
	client redis.UniversalClient
	made   map[string]bool
}

var makeElement = redis.NewScript(
	`if redis.call("SETNX", KEYS[2], 1) == 1 then redis.call("LPUSH", KEYS[1], "x") end return 1`)

func (l *blpopLock) Acquire(ctx context.Context, key string, _ time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: rand.Text()}
	if !l.made[key] {
		if err := makeElement.Run(ctx, l.client, []string{key, key + ":made"}).Err(); err != nil {
			return lease, err
		}
		l.made[key] = true
	}
	err := l.client.BLPop(ctx, time.Second, key).Err()
	if errors.Is(err, redis.Nil) {
		return lease, locks.ErrBusy
	}
	return lease, err
}

func (l *blpopLock) Extend(_ context.Context, lease locks.Lease, _ time.Duration) (locks.Lease, error) {
	return lease, nil
}

func (l *blpopLock) Release(ctx context.Context, lease locks.Lease) error {
	return l.client.RPush(ctx, lease.Key, "x").Err()
}

func (l *blpopLock) Close() error { return nil }
