package etcd

import (
	"context"
	"fmt"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// Locks lists the locks, right ones first.
var Locks = []locks.Spec{mutex, elected, done, deaf, shared}

var done = onEtcd(locks.Spec{
	Name:   "etcd-done",
	Doc:    "etcd-mutex whose holder heeds Done alone, as the library's documents have it",
	Source: mutex.Source,
	Broken: "the library looks once a second whether a lease was not renewed in time, and counts from the answer: " +
		"the next may have the lock for long",
	Expect: []locks.Expectation{{Cause: history.RenewalFailure, Scenario: "renewal-cut"}},
	Open:   func(e locks.Env) (locks.Lock, error) { return open(e, mutexLock{heeds: true}) },
})

var deaf = onEtcd(locks.Spec{
	Name:   "etcd-deaf",
	Doc:    "etcd-mutex whose holder does not ask whether its session is done",
	Source: "many a first use of concurrency.Mutex: Lock, work, Unlock",
	Broken: "a holder whose lease has ended goes on, beside the next",
	Expect: []locks.Expectation{{Cause: history.RenewalFailure, Scenario: "renewal-cut"}},
	Open:   func(e locks.Env) (locks.Lock, error) { return open(e, mutexLock{}) },
})

var shared = onEtcd(locks.Spec{
	Name:   "etcd-shared",
	Doc:    "concurrency.Mutex of many workers on one session, the process's",
	Source: "many a first use of concurrency.Mutex: one session beside the one client",
	Broken: "the key is the session's: a worker that asks with it hears that it has the lock already",
	Expect: []locks.Expectation{{Cause: history.DoubleGrant, Scenario: "contention"}},
	Open: func(e locks.Env) (locks.Lock, error) {
		l, err := open(e, mutexLock{heeds: true, strict: true})
		if err != nil {
			return nil, err
		}
		return &sharedLock{mutexLock: l.(*mutexLock)}, nil
	},
})

// sharedLock uses one session for all workers of a process.
type sharedLock struct {
	*mutexLock
	key any // of the session; nil = none yet
}

// sharedKey identifies a session within a process.
type sharedKey struct{ ttl time.Duration }

type oneSession struct{ *session }

// Close lets the session expire.
func (s oneSession) Close() error {
	s.orphan()
	return nil
}

func (l *sharedLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	if err := l.join(ctx, ttl); err != nil {
		return locks.Lease{Key: key}, fmt.Errorf("%w: open a session: %w", locks.ErrRefused, err)
	}
	return l.mutexLock.Acquire(ctx, key, ttl)
}

func (l *sharedLock) join(ctx context.Context, ttl time.Duration) error {
	if l.key != nil {
		return nil
	}
	s, err := locks.Share(l.env.Process, any(sharedKey{ttl}), func() (oneSession, error) {
		s, err := l.client.open(ctx, ttl, true, nil)
		return oneSession{s}, err
	})
	if err == nil {
		l.key, l.session = sharedKey{ttl}, s.session
	}
	return err
}

func (l *sharedLock) Close() error {
	l.session = nil
	if l.key != nil {
		if err := l.env.Process.Drop(l.key); err != nil {
			return err
		}
	}
	return l.mutexLock.Close()
}
