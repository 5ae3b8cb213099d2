package locks

import (
	"context"
	"time"

	"hammerlock/history"
)

var blindWatchdog = Spec{
	Name:   "blind-watchdog",
	Doc:    "lease with a watchdog that sends PEXPIRE without asking whose lock it is",
	Source: "watchdogs written as a ticker and an EXPIRE",
	Sites:  OneSite,
	Broken: "a holder that has lost its lock goes on prolonging its successor's, and believes that it is its own",
	Expect: []Expectation{{Cause: history.SilentReacquire}},
	Claims: watchdog.Claims,
	Open:   func(e Env) (Lock, error) { return renewBlindly(&blindLock{leaseLock{e.Sites[0]}}, e), nil },
}

// renewBlindly renews without a look at the clock.
func renewBlindly(l Lock, e Env) *renewing {
	r := renew(l, e)
	r.trusting = true
	return r
}

type blindLock struct{ leaseLock }

func (l *blindLock) Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	call := time.Now()
	there, err := l.client.PExpire(ctx, lease.Key, ttl).Result()
	if err == nil && !there {
		err = ErrLost
	}
	return lease.from(call, ttl, err)
}
