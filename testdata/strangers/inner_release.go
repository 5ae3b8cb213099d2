package catalogue

import (
	"context"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

// Redisson issue 891: the release of an inner hold deletes the whole lock. There a read lock within a write lock; here
// the same lock twice.
var innerRelease = locks.Spec{
	Name: "inner-release", Doc: "reentrant lock whose release does not look whether it is the outermost",
	Source: "Redisson issue 891", Sites: locks.OneSite,
	Broken: "an inner release frees the lock for others",
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Reentrant: true},
	Open:   func(e locks.Env) (locks.Lock, error) { return &innerReleaseLock{newReentrant(e)}, nil },
}

type innerReleaseLock struct{ *reentrantLock }

var leaveAll = redis.NewScript(
	`if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 1 then return redis.call("DEL", KEYS[1]) end return 0`)

func (l *innerReleaseLock) Release(ctx context.Context, lease locks.Lease) error {
	held := l.held[lease.Key]
	if held.Count--; held.Count > 0 {
		l.held[lease.Key] = held
	} else {
		delete(l.held, lease.Key)
	}
	return owned(leaveAll.Run(ctx, l.client, []string{lease.Key}, lease.Token).Int64())
}
