package locks

import (
	"context"
	"time"

	"hammerlock/history"
)

var localReentry = Spec{
	Name:   "local-reentry",
	Doc:    "lease that counts its holder's re-entries in the client",
	Source: "wrappers that make a lease reentrant with a thread-local counter",
	Sites:  OneSite,
	Broken: "a re-entry is granted from the counter even when the lease has long been another's",
	Expect: []Expectation{{Cause: history.SilentReacquire}},
	Claims: reentrant.Claims,
	Open:   func(e Env) (Lock, error) { return &localReentryLock{leaseLock{e.Sites[0]}, map[string]Lease{}}, nil },
}

type localReentryLock struct {
	leaseLock
	held map[string]Lease // by key
}

func (l *localReentryLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease, inside := l.held[key]
	if !inside {
		var err error
		if lease, err = l.leaseLock.Acquire(ctx, key, ttl); err != nil {
			return lease, err
		}
	} else {
		lease.Until = until(time.Now(), ttl)
	}
	lease.Count++
	l.held[key] = lease
	return lease, nil
}

func (l *localReentryLock) Release(ctx context.Context, lease Lease) error {
	if lease.Count > 1 {
		lease.Count--
		l.held[lease.Key] = lease
		return nil
	}
	delete(l.held, lease.Key)
	return l.leaseLock.Release(ctx, lease)
}
