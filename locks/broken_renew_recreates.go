package locks

import (
	"context"
	"time"
)

var renewRecreates = Spec{
	Name:   "renew-recreates",
	Doc:    "lease with a watchdog that sets the key again when it is gone",
	Source: "redsync, WithSetNXOnExtend",
	Sites:  OneSite,
	Broken: "a hold that is over comes back to life: another worker may have had the lock meanwhile, and no holder hears of it",
	Caught: []Symptom{{"silent-reacquire", "stop-process"}},
	Claims: watchdog.Claims,
	Open:   func(e Env) (Lock, error) { return renewBlindly(&recreateLock{leaseLock{e.Sites[0]}}, e), nil },
}

type recreateLock struct{ leaseLock }

func (l *recreateLock) Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	call := time.Now()
	err := owned(obtain.Run(ctx, l.client, []string{lease.Key}, lease.Token, ttl.Milliseconds()).Int64())
	return lease.from(call, ttl, err)
}
