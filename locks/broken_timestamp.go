package locks

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var timestamp = Spec{
	Name:   "timestamp",
	Doc:    "SETNX of a deadline by the client's clock; who finds it passed takes over by GETSET; DEL to release",
	Source: "redis.io, SETNX: \"Design pattern: Locking with SETNX\"",
	Sites:  OneSite,
	Broken: "the late holder's DEL takes the lock from its successor; losers of a takeover move the winner's deadline, and an extension overwrites what is there",
	Expect: []Expectation{{Cause: history.ForeignRelease}, {Cause: history.SilentReacquire}},
	Claims: lease.Claims,
	Open:   func(e Env) (Lock, error) { return &timestampLock{leaseLock{e.Sites[0]}, e, getSet}, nil },
}

// timestampLock keeps the deadline in the key: it is the hold's token as well.
type timestampLock struct {
	leaseLock
	env Env
	// takeOver replaces the deadline that was seen by a new one and tells whether this worker was the one to do it.
	takeOver func(ctx context.Context, c redis.UniversalClient, key, seen, deadline string) (bool, error)
}

func (l *timestampLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	end := time.Now().Add(ttl)
	lease := Lease{Key: key, Token: deadline(end)}
	err := setNX(ctx, l.client, key, lease.Token, 0)
	if errors.Is(err, ErrBusy) {
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
		return ErrBusy // released just now, or held: a try is one try
	}
	if err != nil {
		return err
	}
	if err := l.env.between(ctx, key); err != nil {
		return err
	}
	ours, err := l.takeOver(ctx, l.client, key, seen, token)
	if err == nil && !ours {
		return ErrBusy
	}
	return err
}

// getSet takes over if nobody else did since the deadline was seen.
func getSet(ctx context.Context, c redis.UniversalClient, key, seen, deadline string) (bool, error) {
	old, err := c.SetArgs(ctx, key, deadline, redis.SetArgs{Get: true}).Result()
	if errors.Is(err, redis.Nil) {
		return true, nil
	}
	return old == seen, err
}

func (l *timestampLock) Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	end := time.Now().Add(ttl)
	if err := l.client.Set(ctx, lease.Key, deadline(end), 0).Err(); err != nil {
		return lease, err
	}
	lease.Until = end
	return lease, nil
}

func (l *timestampLock) Release(ctx context.Context, lease Lease) error {
	return deleteAny(ctx, l.client, lease.Key)
}

func deadline(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func passed(deadline string) bool {
	n, err := strconv.ParseInt(deadline, 10, 64)
	return err == nil && time.Now().UnixNano() > n
}
