package locks

import (
	"context"
	"sync"
	"time"
)

var sharedHandle = Spec{
	Name:   "shared-handle",
	Doc:    "lease as one lock object for each key that all workers of a process share; the object keeps the token",
	Source: "redis-py issue 416, Lock instances shared by threads; aredis issue 119, by tasks",
	Sites:  OneSite,
	Broken: "the object has the token of the last grant: a late holder releases its successor's lock with the successor's token",
	Caught: []Symptom{{"foreign-release", "stall-worker"}},
	Claims: lease.Claims,
	Queues: true,
	Open: func(e Env) (Lock, error) {
		h, err := Share(e.Process, handlesKey{}, func() (*handles, error) { return &handles{}, nil })
		return &sharedHandleLock{leaseLock{e.Sites[0]}, e.Process, h}, err
	},
}

// handles are the lock objects of a process.
type handles struct{ tokens sync.Map } // by key

type handlesKey struct{}

func (*handles) Close() error { return nil }

type sharedHandleLock struct {
	leaseLock
	process *Process
	handles *handles
}

func (l *sharedHandleLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease, err := l.leaseLock.Acquire(ctx, key, ttl)
	if err == nil {
		l.handles.tokens.Store(key, lease.Token)
	}
	return lease, err
}

// object is the lease with the token that its lock object has.
func (l *sharedHandleLock) object(lease Lease) Lease {
	if token, ok := l.handles.tokens.Load(lease.Key); ok && !lease.Until.IsZero() {
		lease.Token = token.(string)
	}
	return lease
}

func (l *sharedHandleLock) Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	extended, err := l.leaseLock.Extend(ctx, l.object(lease), ttl)
	lease.Until = extended.Until
	return lease, err
}

func (l *sharedHandleLock) Release(ctx context.Context, lease Lease) error {
	return l.leaseLock.Release(ctx, l.object(lease))
}

func (l *sharedHandleLock) Close() error { return l.process.Drop(handlesKey{}) }
