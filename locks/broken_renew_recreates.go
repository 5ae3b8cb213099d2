package locks

import (
	"context"
	"time"

	"hammerlock/history"
)

var renewRecreates = Spec{
	Name:   "renew-recreates",
	Doc:    "lease with a watchdog that sets the key again when it is gone",
	Source: "redsync, WithSetNXOnExtend",
	Sites:  OneSite,
	Broken: "a hold that is over comes back to life: another worker may have had the lock meanwhile, and no holder hears of it",
	Expect: []Expectation{{Cause: history.SilentReacquire, Scenario: "renewal-hangs"}, {Cause: history.SilentReacquire, Scenario: "comeback"}},
	Claims: watchdog.Claims,
	Open:   func(e Env) (Lock, error) { return renewBlindly(&recreateLock{leaseLock{e.Sites[0]}}, e), nil },
}

type recreateLock struct{ leaseLock }

func (l *recreateLock) Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	call := time.Now()
	err := owned(obtain.Run(ctx, l.client, []string{lease.Key}, lease.Token, ttl.Milliseconds()).Int64())
	return lease.from(call, ttl, err)
}
