package catalogue

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

// ionelmc/python-redis-lock issue 71: a release pushes to a list on which waiters block, and then deletes the list so
// that nothing of it stays. Who was refused before the release and blocks after it finds nothing, and sleeps for as
// long as a lease.
var deletedSignal = locks.Spec{
	Name: "deleted-signal", Doc: "lease; a release pushes to a list from which waiters pop, and deletes the list",
	Source: "python-redis-lock issue 71",
	Sites:  locks.OneSite, Broken: "who blocks after the list was deleted sleeps for a lease beside a free lock",
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Wakes: true},
	Open: func(e locks.Env) (locks.Lock, error) {
		return &signalLock{leaseLock: leaseLock{e.Sites[0]}, leases: map[string]time.Duration{}}, nil
	},
}

type signalLock struct {
	leaseLock
	leases map[string]time.Duration // by key
}

var pushAndDelete = redis.NewScript(`
if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
redis.call("DEL", KEYS[2])
redis.call("LPUSH", KEYS[2], 1)
return redis.call("DEL", KEYS[1])`)

func (l *signalLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	l.leases[key] = ttl
	return l.leaseLock.Acquire(ctx, key, ttl)
}

// Wait blocks for a lease, in whole seconds.
func (l *signalLock) Wait(ctx context.Context, key string) (history.Wake, error) {
	if ctx.Err() != nil {
		return history.Poll, context.Cause(ctx)
	}
	patience := max(l.leases[key].Round(time.Second), time.Second)
	err := l.client.BLPop(ctx, patience, sibling("signal", key)).Err()
	if errors.Is(err, redis.Nil) {
		return history.LeaseEnd, nil
	}
	return history.Signal, err
}

func (l *signalLock) Release(ctx context.Context, lease locks.Lease) error {
	signal := sibling("signal", lease.Key)
	if err := owned(pushAndDelete.Run(ctx, l.client, []string{lease.Key, signal}, lease.Token).Int64()); err != nil {
		return err
	}
	return locks.AfterGrant(l.client.Del(ctx, signal).Err())
}
