package locks

import (
	"context"

	"hammerlock/history"
)

var plainDel = Spec{
	Name:   "plain-del",
	Doc:    "SET NX PX, released by an unconditional DEL",
	Source: "the recipe of most blog posts; redis.io, SET, warns of it",
	Sites:  OneSite,
	Broken: "a holder whose lease has expired deletes the lock of its successor",
	Expect: []Expectation{{Cause: history.ForeignRelease}},
	Claims: lease.Claims,
	Open:   func(e Env) (Lock, error) { return &plainDelLock{leaseLock{e.Sites[0]}}, nil },
}

type plainDelLock struct{ leaseLock }

func (l *plainDelLock) Release(ctx context.Context, lease Lease) error {
	return deleteAny(ctx, l.client, lease.Key)
}
