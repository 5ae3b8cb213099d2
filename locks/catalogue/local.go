package catalogue

import (
	"context"
	"sync"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

var local = locks.Spec{
	Name:    "local",
	Doc:     "a mutex inside the process",
	Source:  "sync.Mutex, as synchronized is in Java",
	Sites:   locks.NoSite,
	Assumes: "there is one process",
	Expect:  []locks.Expectation{{Cause: history.DoubleGrant, Scenario: "two-processes"}},
	Claims:  history.Claims{Excludes: true, Owned: true, Cleans: true},
	Open:    func(e locks.Env) (locks.Lock, error) { return localLock{process: e.Process}, nil },
}

type localLock struct {
	unending
	process *locks.Process
}

func (l localLock) Acquire(_ context.Context, key string, _ time.Duration) (locks.Lease, error) {
	if !l.mutex(key).TryLock() {
		return locks.Lease{}, locks.ErrBusy
	}
	return locks.Lease{Key: key}, nil
}

func (l localLock) Release(_ context.Context, lease locks.Lease) error {
	l.mutex(lease.Key).Unlock()
	return nil
}

// localKey is the key under which a process keeps the mutex of a lock.
type localKey string

func (l localLock) mutex(key string) *sync.Mutex {
	m, ok := l.process.Kept.Load(localKey(key))
	if !ok {
		m, _ = l.process.Kept.LoadOrStore(localKey(key), &sync.Mutex{})
	}
	return m.(*sync.Mutex)
}
