package locks

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var timestampDel = Spec{
	Name:   "timestamp-del",
	Doc:    "timestamp, but who finds the deadline passed deletes the key and begins anew with SETNX",
	Source: "redis.io, SETNX: the takeover that its text warns of",
	Sites:  OneSite,
	Broken: "two workers see the same dead lock; the slower one deletes what the faster one has just taken; and an extension overwrites what is there",
	Expect: []Expectation{{Cause: history.ForeignRelease}, {Cause: history.DoubleGrant}, {Cause: history.SilentReacquire}},
	Claims: lease.Claims,
	Open:   func(e Env) (Lock, error) { return &timestampLock{leaseLock{e.Sites[0]}, e, deleteAndSet}, nil },
}

func deleteAndSet(ctx context.Context, c redis.UniversalClient, key, _, deadline string) (bool, error) {
	if err := c.Del(ctx, key).Err(); err != nil {
		return false, err
	}
	err := setNX(ctx, c, key, deadline, 0)
	if errors.Is(err, ErrBusy) {
		return false, nil
	}
	return err == nil, err
}
