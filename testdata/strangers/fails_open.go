package catalogue

import (
	"context"
	"errors"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// appstrate/appstrate pull request 1417: who could not get the lock in time goes on without it. Others do so when the
// server cannot be reached.
var failsOpen = locks.Spec{
	Name: "fails-open", Doc: "lease; if the server gives no answer, the work is done without the lock",
	Source: "appstrate pull request 1417", Sites: locks.OneSite,
	Broken: "an error is taken for a grant",
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true}, Shared: true,
	Open: func(e locks.Env) (locks.Lock, error) { return &failsOpenLock{leaseLock{e.Sites[0]}}, nil },
}

type failsOpenLock struct{ leaseLock }

func (l *failsOpenLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	lease, err := l.leaseLock.Acquire(ctx, key, ttl)
	if err != nil && !errors.Is(err, locks.ErrBusy) && ctx.Err() == nil {
		return from(lease, call, ttl, nil)
	}
	return lease, err
}
