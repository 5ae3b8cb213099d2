package catalogue

import (
	"context"
	"errors"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// leandromoreira/redlock-rb issue 129 and pull request 134: an error of one server fails the whole try, though a
// majority granted.
var oneError = locks.Spec{
	Name: "one-error", Doc: "redlock that gives up when any of its servers cannot be reached",
	Source: "redlock-rb issue 129 and pull request 134", Sites: locks.ManySites,
	Broken: "with one server of five down nobody gets the lock",
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true}, Shared: true,
	Open: func(e locks.Env) (locks.Lock, error) { return &oneErrorLock{newRedlock(e)}, nil },
}

type oneErrorLock struct{ *redlockLock }

func (l *oneErrorLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: uuid()}
	call := time.Now()
	v := l.grant(ctx, lease, ttl)
	lease.Until = locks.Until(call, ttl)
	refused := false
	for _, err := range append(v.errs, v.refusals...) {
		refused = refused || !errors.Is(err, locks.ErrBusy)
	}
	if v.ok >= l.quorum && !refused && time.Now().Before(lease.Until) {
		return lease, nil
	}
	lease.Until = time.Time{}
	return lease, l.giveUp(ctx, lease, ttl, v)
}
