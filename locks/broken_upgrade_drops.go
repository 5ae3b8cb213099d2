package locks

import (
	"context"
	"errors"
	"time"

	"hammerlock/history"
)

var upgradeDrops = Spec{
	Name:   "upgrade-drops",
	Doc:    "read-write whose upgrade gives the reader's hold back and waits until it can be the writer",
	Source: "java.util.concurrent, ReentrantReadWriteLock: upgrading is not possible, so users unlock and lock again",
	Sites:  OneSite,
	Broken: "others write between the two steps: what the reader has seen is old when it becomes the writer",
	Expect: []Expectation{{Cause: history.DoubleGrant, Scenario: "upgrade"}, {Cause: history.Exclusion, Scenario: "upgrade"}},
	Claims: readWrite.Claims,
	Open:   func(e Env) (Lock, error) { return &upgradeDropsLock{newReadWrite(e, readEnter)}, nil },
}

type upgradeDropsLock struct{ *readWriteLock }

func (l *upgradeDropsLock) Upgrade(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	if err := l.Release(ctx, lease); err != nil {
		return lease, err
	}
	over, cancel := context.WithTimeout(ctx, ttl)
	defer cancel()
	for {
		writer, err := l.Acquire(ctx, lease.Key, ttl)
		if !errors.Is(err, ErrBusy) {
			return writer, AfterGrant(err)
		}
		if _, err := l.Wait(over, lease.Key); err != nil || over.Err() != nil {
			return lease, ErrLost
		}
	}
}
