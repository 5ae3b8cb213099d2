package locks

import (
	"context"
	"time"

	"hammerlock/history"
)

var none = Spec{
	Name:   "none",
	Doc:    "no lock at all: everybody reads, adds one and writes",
	Source: "the baseline of every article on the subject",
	Sites:  NoSite,
	Broken: "guards nothing: two visits read the same count and one of them is lost",
	Expect: []Expectation{{Cause: history.Exclusion}},
	Open:   func(Env) (Lock, error) { return noLock{}, nil },
}

// Outside is what stands for the lock of a service that does its own locking, which cannot be seen.
var Outside = Spec{Name: "outside", Sites: OneSite, Counting: Elsewhere, Open: none.Open}

type noLock struct{ unending }

func (noLock) Acquire(_ context.Context, key string, _ time.Duration) (Lease, error) {
	return Lease{Key: key}, nil
}
func (noLock) Release(context.Context, Lease) error { return nil }

// unending is what locks without expiry have in common.
type unending struct{}

func (unending) Extend(_ context.Context, l Lease, _ time.Duration) (Lease, error) { return l, nil }
func (unending) Close() error                                                      { return nil }
