package catalogue

import (
	"context"

	"hammerlock/history"
	"hammerlock/locks"
)

// Redisson issue 4217: the release of one of two holds ends the renewal of both. There a read lock is kept when the
// write lock is released; here the same lock was entered twice.
var halfRenewed = locks.Spec{
	Name: "half-renewed", Doc: "reentrant with a watchdog that ends with the first release",
	Source: "Redisson issue 4217", Sites: locks.OneSite,
	Broken: "after an inner release nobody renews the outer hold: its lease runs out under a holder that is not told",
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Reentrant: true, Renews: true},
	Open:   func(e locks.Env) (locks.Lock, error) { return &halfRenewedLock{renew(newReentrant(e), e)}, nil },
}

type halfRenewedLock struct{ *renewing }

func (l *halfRenewedLock) Release(ctx context.Context, lease locks.Lease) error {
	l.mu.Lock()
	t, ok := l.tasks[lease.Token]
	delete(l.tasks, lease.Token)
	l.mu.Unlock()
	if ok {
		t.end()
	}
	return l.Lock.Release(ctx, lease)
}
