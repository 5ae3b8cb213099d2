package locks

import (
	"context"
	"time"

	"hammerlock/history"
)

var lateBelief = Spec{
	Name:   "late-belief",
	Doc:    "watchdog, but an extension counts from when it was sent, answered or not",
	Source: "watchdogs that move the deadline first and ask afterwards",
	Sites:  OneSite,
	Broken: "an extension that was never acknowledged may not have happened: its holder believes in it all the same",
	Expect: []Expectation{{Cause: history.RenewalFailure}, {Cause: history.OverClaim}},
	Claims: watchdog.Claims,
	Open:   func(e Env) (Lock, error) { return renew(&lateBeliefLock{leaseLock{e.Sites[0]}}, e), nil },
}

type lateBeliefLock struct{ leaseLock }

// Extend returns an error with a deadline that has moved all the same: that is what its holder believes.
func (l *lateBeliefLock) Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	call := time.Now()
	_, err := l.leaseLock.Extend(ctx, lease, ttl)
	if outcome, _ := Classify(err); outcome != history.Failed {
		lease.Until = until(call, ttl)
	}
	return lease, err
}
