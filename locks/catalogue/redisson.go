package catalogue

import (
	"context"
	"errors"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

var redisson = locks.Spec{
	Name: "redisson",
	Doc: "reentrant with a watchdog (30 s, renewed every 10 s, unless a lease is given) and " +
		"waiters woken by pub/sub",
	Source:  "Redisson, RLock.lock: it excludes a Redisson client on the same key",
	Sites:   locks.OneSite,
	Assumes: keepsKeys + heedsLost,
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Reentrant: true, Renews: true,
		Wakes: true},
	Listens: true,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &redissonLock{within: e.Within, renewing: renew(newReentrant(e), e),
			waiting: waiting{client: e.Sites[0], process: e.Process}}, nil
	},
}

// redissonLease is the lease that Redisson takes and renews if the user sets none.
const redissonLease = 30 * time.Second

type redissonLock struct {
	*renewing
	waiting
	within string // see locks.Env
}

func (l *redissonLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	if ttl == 0 {
		ttl = redissonLease
	}
	return l.renewing.Acquire(ctx, key, ttl)
}

// Wait returns when a message reports a release, or when the holder's lease ends. It subscribes first and then
// checks the lock, so it misses no release.
func (l *redissonLock) Wait(ctx context.Context, key string) (history.Wake, error) {
	return l.wait(ctx, redissonSibling(l.within, redissonChannel, key),
		func(ctx context.Context) (time.Duration, history.Wake, error) {
			left, err := l.client.PTTL(ctx, key).Result()
			return left, history.LeaseEnd, err
		})
}

func (l *redissonLock) Close() error {
	err := l.renewing.Close()
	return errors.Join(err, l.waiting.close())
}
