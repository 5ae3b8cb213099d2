package catalogue

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var fenced = locks.Spec{
	Name:   "fenced",
	Doc:    "lease, granted by a script that draws a fencing token at the same time",
	Source: "Kleppmann, How to do distributed locking: fencing tokens",
	Sites:  locks.OneSite,
	Assumes: "the server keeps the lock and the counter; what is guarded refuses a token that is not " +
		"greater than all before",
	Expect: []locks.Expectation{
		{Cause: history.Overrun, Fault: "stall-worker"},
		{Cause: history.Regressed, Fault: "restart-late"},
		{Cause: history.Repeated, Fault: "restart-late"},
	},
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Fences: true},
	Shared: true,
	Open:   func(e locks.Env) (locks.Lock, error) { return &fencedLock{leaseLock{e.Sites[0]}}, nil },
}

type fencedLock struct{ leaseLock }

var setAndDraw = redis.NewScript(`
if redis.call("SET", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then return redis.call("INCR", KEYS[2]) end
return 0`)

// fenceKey names the counter of a lock's grants. The counter is never deleted, so each fencing token is greater than
// the ones before.
func fenceKey(key string) string { return sibling("fence", key) }

func (l *fencedLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	n, err := setAndDraw.Run(ctx, l.client, []string{key, fenceKey(key)}, lease.Token, ttl.Milliseconds()).Int64()
	lease.Fence = n
	return from(lease, call, ttl, granted(n, err))
}
