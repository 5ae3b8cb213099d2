package locks

import (
	"context"
	"time"

	"hammerlock/history"
)

var clockDel = Spec{
	Name:   "clock-del",
	Doc:    "SET NX PX, released by DEL if by the holder's clock the lease is not over",
	Source: "Celery, Task Cookbook: ensuring a task is only executed one at a time",
	Sites:  OneSite,
	Broken: "time passes between the look at the clock and the DEL: it deletes the lock of the holder of that moment",
	Expect: []Expectation{{Cause: history.ForeignRelease}},
	Claims: lease.Claims,
	Open:   func(e Env) (Lock, error) { return &clockDelLock{leaseLock{e.Sites[0]}, e}, nil },
}

type clockDelLock struct {
	leaseLock
	env Env
}

func (l *clockDelLock) Release(ctx context.Context, lease Lease) error {
	if lease.Until.IsZero() {
		return l.leaseLock.Release(ctx, lease) // of an Acquire whose answer was lost
	}
	if !time.Now().Before(lease.Until) {
		return ErrLost
	}
	if err := l.env.between(ctx, lease.Key); err != nil {
		return err
	}
	return deleteAny(ctx, l.client, lease.Key)
}
