package catalogue

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var watch = locks.Spec{
	Name:    "watch",
	Doc:     "SET NX PX; released and extended by WATCH, GET, a comparison, MULTI and EXEC",
	Source:  "redis.io, Transactions: check-and-set; the lock of Redis in Action, 6.2",
	Sites:   locks.OneSite,
	Assumes: keepsKeys + doneInTime,
	Claims:  history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true},
	Shared:  true,
	Open:    func(e locks.Env) (locks.Lock, error) { return &watchLock{leaseLock{e.Sites[0]}, e}, nil },
}

type watchLock struct {
	leaseLock
	env locks.Env
}

// watchTries limits the attempts of a transaction. An attempt fails if the key changes while it runs.
const watchTries = 5

func (l *watchLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	err := l.ifOwned(ctx, lease, func(p redis.Pipeliner) { p.PExpire(ctx, lease.Key, ttl) })
	return from(lease, call, ttl, err)
}

func (l *watchLock) Release(ctx context.Context, lease locks.Lease) error {
	return l.ifOwned(ctx, lease, func(p redis.Pipeliner) { p.Del(ctx, lease.Key) })
}

// ifOwned executes the command that queue adds, if the value of the key is still the token.
func (l *watchLock) ifOwned(ctx context.Context, lease locks.Lease, queue func(redis.Pipeliner)) error {
	var err error = redis.TxFailedErr
	for try := 0; try < watchTries && errors.Is(err, redis.TxFailedErr); try++ {
		err = l.once(ctx, lease, queue)
	}
	return err
}

// once makes one attempt of the transaction. It returns redis.TxFailedErr if the key has changed; nothing was done
// then.
func (l *watchLock) once(ctx context.Context, lease locks.Lease, queue func(redis.Pipeliner)) error {
	return l.client.Watch(ctx, func(tx *redis.Tx) error {
		held, err := tx.Get(ctx, lease.Key).Result()
		if errors.Is(err, redis.Nil) || err == nil && held != lease.Token {
			return locks.ErrLost
		}
		if err != nil {
			return err
		}
		if err := l.env.Between(ctx, lease.Key); err != nil {
			return err
		}
		return exec(ctx, tx, queue)
	}, lease.Key)
}

// exec runs one command as a transaction. It returns ErrLost if the command had no effect, because the key is gone.
func exec(ctx context.Context, tx *redis.Tx, queue func(redis.Pipeliner)) error {
	replies, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { queue(p); return nil })
	if err != nil {
		return err
	}
	done := true
	switch reply := replies[0].(type) {
	case *redis.IntCmd:
		done = reply.Val() > 0
	case *redis.BoolCmd:
		done = reply.Val()
	}
	if !done {
		return locks.ErrLost
	}
	return nil
}
