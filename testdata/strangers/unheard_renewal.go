package catalogue

import (
	"context"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// linagora/cozy-stack pull request 4911 and Redisson issue 2037: the renewal compares the owner, but nobody looks at
// its answer.
var unheardRenewal = locks.Spec{
	Name: "unheard-renewal", Doc: "watchdog that renews by a script and does not read the answer",
	Source: "cozy-stack pull request 4911; Redisson issue 2037",
	Sites:  locks.OneSite, Broken: "a holder that has lost the lock is never told",
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Renews: true},
	Open: func(e locks.Env) (locks.Lock, error) {
		return &unheardLock{leaseLock: leaseLock{e.Sites[0]}, stops: map[string]context.CancelFunc{}}, nil
	},
}

type unheardLock struct {
	leaseLock
	stops map[string]context.CancelFunc
}

func (l *unheardLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := l.leaseLock.Acquire(ctx, key, ttl)
	if err != nil {
		return lease, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stops[lease.Token] = stop
	go func() {
		tick := time.NewTicker(ttl / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = extendOwned(ctx, l.client, key, lease.Token, ttl)
			}
		}
	}()
	lease.Until = time.Time{}
	return lease, nil
}

func (l *unheardLock) Release(ctx context.Context, lease locks.Lease) error {
	if stop := l.stops[lease.Token]; stop != nil {
		stop()
		delete(l.stops, lease.Token)
	}
	return l.leaseLock.Release(ctx, lease)
}

func (l *unheardLock) Close() error {
	for _, stop := range l.stops {
		stop()
	}
	return nil
}
