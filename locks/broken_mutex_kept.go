package locks

import (
	"context"
	"time"

	"hammerlock/history"
)

var mutexKept = Spec{
	Name:     "mutex-kept",
	Doc:      "lease behind a mutex of the process, which spares the server all but one of its workers",
	Source:   "Spring Integration issues 1888 and 2660, RedisLockRegistry",
	Sites:    OneSite,
	Broken:   "a release that finds the lease expired, or fails, returns before it unlocks the mutex: no worker of the process gets in again",
	Expect:   []Expectation{{Cause: history.Deadlock}},
	Claims:   lease.Claims,
	Outlives: true,
	Open: func(e Env) (Lock, error) {
		return &mutexKeptLock{leaseLock{e.Sites[0]}, localLock{process: e.Process}}, nil
	},
}

type mutexKeptLock struct {
	leaseLock
	local localLock
}

func (l *mutexKeptLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	if !l.local.mutex(key).TryLock() {
		return Lease{Key: key}, ErrBusy
	}
	lease, err := l.leaseLock.Acquire(ctx, key, ttl)
	if err != nil {
		l.local.mutex(key).Unlock()
	}
	return lease, err
}

func (l *mutexKeptLock) Release(ctx context.Context, lease Lease) error {
	if err := l.leaseLock.Release(ctx, lease); err != nil || lease.Until.IsZero() {
		return err
	}
	l.local.mutex(lease.Key).Unlock()
	return nil
}
