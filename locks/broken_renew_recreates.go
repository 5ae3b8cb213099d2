package locks

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var renewRecreates = Spec{
	Name:   "renew-recreates",
	Doc:    "lease with a watchdog that sets the key again when it is gone",
	Source: "redsync, WithSetNXOnExtend",
	Sites:  OneSite,
	Broken: "a hold that is over comes back to life: somebody may have had the lock meanwhile, nobody is told",
	Caught: []Symptom{{"silent-reacquire", "stop-process"}},
	Claims: watchdog.Claims,
	Open:   func(e Env) (Lock, error) { return renewBlindly(&recreateLock{leaseLock{e.Sites[0]}}, e), nil },
}

type recreateLock struct{ leaseLock }

var extendOrCreate = redis.NewScript(`
local held = redis.call("GET", KEYS[1])
if held and held ~= ARGV[1] then return 0 end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return 1`)

func (l *recreateLock) Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	call := time.Now()
	err := owned(extendOrCreate.Run(ctx, l.client, []string{lease.Key}, lease.Token, ttl.Milliseconds()).Int64())
	return lease.from(call, ttl, err)
}
