package locks

import (
	"context"
	"sync"
	"time"

	"hammerlock/history"
)

var local = Spec{
	Name:    "local",
	Doc:     "a mutex inside the process",
	Source:  "sync.Mutex, as synchronized is in Java",
	Sites:   NoSite,
	Assumes: "there is one process",
	Expect:  []Expectation{{Cause: history.DoubleGrant, Scenario: "two-processes"}},
	Claims:  history.Claims{Excludes: true, Owned: true, Cleans: true},
	Open:    func(e Env) (Lock, error) { return localLock{process: e.Process}, nil },
}

type localLock struct {
	unending
	process *Process
}

func (l localLock) Acquire(_ context.Context, key string, _ time.Duration) (Lease, error) {
	if !l.mutex(key).TryLock() {
		return Lease{}, ErrBusy
	}
	return Lease{Key: key}, nil
}

func (l localLock) Release(_ context.Context, lease Lease) error {
	l.mutex(lease.Key).Unlock()
	return nil
}

func (l localLock) mutex(key string) *sync.Mutex {
	m, ok := l.process.mutexes.Load(key)
	if !ok {
		m, _ = l.process.mutexes.LoadOrStore(key, &sync.Mutex{})
	}
	return m.(*sync.Mutex)
}
