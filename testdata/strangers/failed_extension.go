package catalogue

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

// sewenew/redis-plus-plus issue 24 and pull request 39: an extension answers the time that is left, also when too few
// servers extended the lock.
var failedExtension = locks.Spec{
	Name: "failed-extension", Doc: "redlock whose extension answers the time that is left, without a look at the votes",
	Source: "redis-plus-plus issue 24 and pull request 39", Sites: locks.ManySites, Broken: "an extension that found " +
		"no quorum counts all the same",
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true}, Shared: true,
	Open: func(e locks.Env) (locks.Lock, error) { return &failedExtensionLock{newRedlock(e)}, nil },
}

type failedExtensionLock struct{ *redlockLock }

func (l *failedExtensionLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	v := l.poll(ctx, ttl, func(ctx context.Context, c redis.UniversalClient) error {
		return extendOwned(ctx, c, lease.Key, lease.Token, ttl)
	})
	if end := locks.Until(call, ttl); time.Now().Before(end) {
		lease.Until = end
		return lease, nil
	}
	return lease, l.decide(v, "extend")
}
