package catalogue

import (
	"context"
	"sync"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// Redisson issue 3714: a renewal that finds the hold lost ends, but stays in the map by name. The next hold of the same
// name finds it there, and is not renewed.
var staleEntry = locks.Spec{
	Name: "stale-entry", Doc: "watchdog whose renewals are kept by the lock's name", Source: "Redisson issue 3714",
	Sites:  locks.OneSite,
	Broken: "after a loss the next hold finds the old renewal, and none is begun",
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Renews: true},
	Open: func(e locks.Env) (locks.Lock, error) {
		return &staleEntryLock{leaseLock: leaseLock{e.Sites[0]}, tasks: map[string]*staleTask{}}, nil
	},
}

type staleTask struct {
	lost chan struct{}
	stop context.CancelFunc
	done chan struct{}
}

type staleEntryLock struct {
	leaseLock
	mu    sync.Mutex
	tasks map[string]*staleTask
}

func (l *staleEntryLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := l.leaseLock.Acquire(ctx, key, ttl)
	if err != nil {
		return lease, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t, ok := l.tasks[key]
	if !ok {
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		t = &staleTask{make(chan struct{}), stop, make(chan struct{})}
		l.tasks[key] = t
		go l.renew(ctx, t, lease, ttl)
	}
	lease.Lost = t.lost
	lease.Until = time.Time{}
	return lease, nil
}

func (l *staleEntryLock) renew(ctx context.Context, t *staleTask, lease locks.Lease, ttl time.Duration) {
	defer close(t.done)
	tick := time.NewTicker(ttl / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := extendOwned(ctx, l.client, lease.Key, lease.Token, ttl); err == locks.ErrLost {
			close(t.lost)
			return
		}
	}
}

func (l *staleEntryLock) Release(ctx context.Context, lease locks.Lease) error {
	err := l.leaseLock.Release(ctx, lease)
	if err == nil { // as unlock: what is not ours throws before the renewal is cancelled
		l.end(lease.Key)
	}
	return err
}

func (l *staleEntryLock) end(key string) {
	l.mu.Lock()
	t, ok := l.tasks[key]
	delete(l.tasks, key)
	l.mu.Unlock()
	if ok {
		t.stop()
		<-t.done
	}
}

func (l *staleEntryLock) Close() error {
	for key := range l.tasks {
		l.end(key)
	}
	return nil
}
