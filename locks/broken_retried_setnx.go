package locks

import (
	"context"
	"time"

	"hammerlock/history"
)

var retriedSetNX = Spec{
	Name:   "retried-setnx",
	Doc:    "lease from a client that sends a command again if the connection failed under it",
	Source: "go-redis issue 2985 and pull request 1121, MaxRetries",
	Sites:  OneSite,
	Broken: "SET NX is not repeatable: the second one finds the key of the first, and the lock is refused although no other worker has it",
	Expect: []Expectation{{Cause: history.Phantom, Scenario: "ambiguous"}},
	Claims: lease.Claims,
	Open:   func(e Env) (Lock, error) { return &retriedLock{leaseLock{e.Sites[0]}}, nil },
}

type retriedLock struct{ leaseLock }

const clientTries = 3

func (l *retriedLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease, err := l.leaseLock.Acquire(ctx, key, ttl)
	for range clientTries - 1 {
		if outcome, _ := Classify(err); outcome != history.Unknown {
			break
		}
		lease, err = l.take(ctx, lease, ttl)
	}
	return lease, err
}
