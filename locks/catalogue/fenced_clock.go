package catalogue

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var fencedClock = locks.Spec{
	Name: "fenced-clock",
	Doc: "fenced, but a token is the server's clock in microseconds, or one more than the last if that is " +
		"greater: it outlives a failover",
	Source: "Kleppmann, How to do distributed locking: fencing tokens; Kulkarni et al., Logical Physical Clocks: " +
		"the greater of clock and counter",
	Sites: locks.OneSite,
	Assumes: "the server keeps the lock; no server that takes over has a clock behind the last token; " +
		"what is guarded refuses a token that is not greater than all before",
	Expect: []locks.Expectation{
		{Cause: history.ServiceLoss, Fault: "lost-grant"},
	},
	Claims: fenced.Claims,
	Shared: true,
	Open:   func(e locks.Env) (locks.Lock, error) { return &fencedClockLock{leaseLock{e.Sites[0]}}, nil },
}

type fencedClockLock struct{ leaseLock }

// drawByClock defines Lua functions for fencing tokens. The next token is the last one plus 1, or the server's clock
// in µs if that is greater. A counter alone would repeat tokens after a failover that lost writes. The clock alone
// may stop or step back.
//
// draw(n) reserves the next n tokens of KEYS[3] and returns the last one. after(last, n, now) computes that token
// without storing it; keep(fence) stores it.
const drawByClock = `
local function clock()
	local t = redis.call("TIME")
	return t[1] * 1000000 + t[2]
end
local function after(last, n, now) return math.max((last or 0) + n, now) end
local function keep(fence) redis.call("SET", KEYS[3], string.format("%.0f", fence)) end
local function draw(n)
	local fence = after(redis.call("GET", KEYS[3]), n, clock())
	keep(fence)
	return fence
end
`

// setAndDrawByClock returns the fencing token, or 0 if another worker holds the lock. KEYS: the lock, an unused key
// and the last fencing token. ARGV: the token and the lease in ms.
var setAndDrawByClock = redis.NewScript(drawByClock + `
if redis.call("SET", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then return draw(1) end
return 0`)

func (l *fencedClockLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	n, err := setAndDrawByClock.Run(ctx, l.client, []string{key, key, fenceKey(key)}, lease.Token,
		ttl.Milliseconds()).Int64()
	lease.Fence = n
	return from(lease, call, ttl, granted(n, err))
}
