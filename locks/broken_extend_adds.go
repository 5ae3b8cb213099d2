package locks

import (
	"context"
	"time"

	"hammerlock/history"
)

var extendAdds = Spec{
	Name:   "extend-adds",
	Doc:    "lease with a watchdog that adds a lease to what is left of the last one",
	Source: "redis-py pull request 1303, Lock.extend without replace_ttl",
	Sites:  OneSite,
	Broken: "the lease grows with each renewal: when its holder dies after a while the lock stays for many leases",
	Expect: []Expectation{{Cause: history.TTLTooLong}},
	Claims: watchdog.Claims,
	Open:   func(e Env) (Lock, error) { return renew(&extendAddsLock{leaseLock{e.Sites[0]}}, e), nil },
}

type extendAddsLock struct{ leaseLock }

var compareAndAdd = newOwnedScript(`
if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call("PEXPIRE", KEYS[1], redis.call("PTTL", KEYS[1]) + ARGV[2])`)

func (l *extendAddsLock) Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	s := compareAndAdd
	call := time.Now()
	err := s.run(ctx, l.client, []any{"evalsha", s.digest, 1, lease.Key, lease.Token, ttl.Milliseconds()})
	return lease.from(call, ttl, err)
}
