package locks

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var getDel = Spec{
	Name:   "get-del",
	Doc:    "SET NX PX, released by GET, a comparison in the client, and DEL",
	Source: "the usual repair of plain-del, without a script",
	Sites:  OneSite,
	Broken: "the lease can expire and be granted to another worker between the comparison and the DEL",
	Expect: []Expectation{{Cause: history.ForeignRelease}},
	Claims: lease.Claims,
	Open:   func(e Env) (Lock, error) { return &getDelLock{leaseLock{e.Sites[0]}, e}, nil },
}

type getDelLock struct {
	leaseLock
	env Env
}

func (l *getDelLock) Release(ctx context.Context, lease Lease) error {
	held, err := l.client.Get(ctx, lease.Key).Result()
	if errors.Is(err, redis.Nil) || err == nil && held != lease.Token {
		return ErrLost
	}
	if err != nil {
		return err
	}
	if err := l.env.between(ctx, lease.Key); err != nil {
		return err
	}
	return deleteAny(ctx, l.client, lease.Key)
}
