package catalogue

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

// rogermadjos/node-mutex issue 2 and pull request 3: 0 is true in Lua, so that a try that was refused gives the key a
// new time to live as well.
var bumpedTTL = locks.Spec{
	Name: "bumped-ttl", Doc: "SETNX and, if it was set, PEXPIRE, in one script",
	Source: "node-mutex issue 2 and pull request 3", Sites: locks.OneSite,
	Broken: "every refused try prolongs the lease: while somebody asks, the lock of a holder that died never ends",
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true}, Shared: true,
	Open: func(e locks.Env) (locks.Lock, error) { return &bumpedLock{leaseLock{e.Sites[0]}}, nil },
}

type bumpedLock struct{ leaseLock }

var setOrProlong = redis.NewScript(`
local locked = redis.call("SETNX", KEYS[1], ARGV[1])
if locked then redis.call("PEXPIRE", KEYS[1], ARGV[2]) end
return locked`)

func (l *bumpedLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	err := granted(setOrProlong.Run(ctx, l.client, []string{key}, lease.Token, ttl.Milliseconds()).Int64())
	return from(lease, call, ttl, err)
}
