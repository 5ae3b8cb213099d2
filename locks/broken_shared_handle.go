package locks

import (
	"sync"

	"hammerlock/history"
)

var sharedHandle = Spec{
	Name:   "shared-handle",
	Doc:    "lease as one lock object for each key that all workers of a process share; the object keeps the token",
	Source: "redis-py issue 416, Lock instances shared by threads; aredis issue 119, by tasks",
	Sites:  OneSite,
	Broken: "the object has the token of the last grant: a late holder releases its successor's lock with the successor's token",
	Expect: []Expectation{{Cause: history.ForeignRelease, Scenario: "late-holder"}},
	Claims: lease.Claims,
	Queues: true,
	Open: func(e Env) (Lock, error) {
		h, err := Share(e.Process, handlesKey{}, func() (*handles, error) { return &handles{}, nil })
		return &sharedHandleLock{keptTokenLock{leaseLock{e.Sites[0]}, &h.tokens, true}, e.Process}, err
	},
}

// handles are the lock objects of a process.
type handles struct{ tokens sync.Map } // by key

type handlesKey struct{}

func (*handles) Close() error { return nil }

type sharedHandleLock struct {
	keptTokenLock
	process *Process
}

func (l *sharedHandleLock) Close() error { return l.process.Drop(handlesKey{}) }
