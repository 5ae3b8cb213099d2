package catalogue

import (
	"context"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

var none = locks.Spec{
	Name:   "none",
	Doc:    "no lock at all: everybody reads, adds one and writes",
	Source: "the baseline of every article on the subject",
	Sites:  locks.NoSite,
	Broken: "guards nothing: two visits read the same count and one of them is lost",
	Expect: []locks.Expectation{{Cause: history.Exclusion}},
	Open:   func(locks.Env) (locks.Lock, error) { return noLock{}, nil },
}

// Outside stands for the lock inside a service under test. The suite itself takes no lock then.
var Outside = locks.Spec{Name: "outside", Sites: locks.OneSite, Counting: locks.Elsewhere, Open: none.Open}

type noLock struct{ unending }

func (noLock) Acquire(_ context.Context, key string, _ time.Duration) (locks.Lease, error) {
	return locks.Lease{Key: key}, nil
}
func (noLock) Release(context.Context, locks.Lease) error { return nil }

type unending struct{}

func (unending) Extend(_ context.Context, l locks.Lease, _ time.Duration) (locks.Lease, error) {
	return l, nil
}
func (unending) Close() error { return nil }
