package locks

import (
	"context"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var watchLax = Spec{
	Name:   "watch-lax",
	Doc:    "watch, but the release compares nothing: WATCH, MULTI, DEL, EXEC",
	Source: "reviews: \"it is in a transaction, so it is safe\"",
	Sites:  OneSite,
	Broken: "a transaction that compares nothing is a plain DEL: a late holder deletes its successor's lock",
	Expect: []Expectation{{Cause: history.ForeignRelease}},
	Claims: lease.Claims,
	Open:   func(e Env) (Lock, error) { return &watchLaxLock{leaseLock{e.Sites[0]}}, nil },
}

type watchLaxLock struct{ leaseLock }

func (l *watchLaxLock) Release(ctx context.Context, lease Lease) error {
	return l.client.Watch(ctx, func(tx *redis.Tx) error {
		return exec(ctx, tx, func(p redis.Pipeliner) { p.Del(ctx, lease.Key) })
	}, lease.Key)
}
