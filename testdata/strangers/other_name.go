package catalogue

import (
	"context"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// futurewei-cloud/alcor pull request 308: each method makes the name of the lock's key by itself, and the one that
// releases makes another one.
var otherName = locks.Spec{
	Name: "other-name", Doc: "SET NX PX; DEL to release, of a key whose name was made twice",
	Source: "alcor pull request 308", Sites: locks.OneSite,
	Broken: "a release deletes a key that nobody has: the lock stays until its lease is over",
	Claims: history.Claims{Excludes: true, Expires: true, Cleans: true}, Shared: true,
	Open: func(e locks.Env) (locks.Lock, error) { return &otherNameLock{leaseLock{e.Sites[0]}}, nil },
}

type otherNameLock struct{ leaseLock }

func (l *otherNameLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return l.leaseLock.Acquire(ctx, sibling("lock", key), ttl)
}

// Release is given the name that Acquire made.
func (l *otherNameLock) Release(ctx context.Context, lease locks.Lease) error {
	return l.client.Del(ctx, sibling("lock", lease.Key)).Err()
}
