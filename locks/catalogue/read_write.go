package catalogue

import (
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var readWrite = locks.Spec{
	Name: "read-write",
	Doc: "a key for the writer, a set of readers with the ends of their leases, and one of waiting writers, " +
		"who go first; a reader can become the writer",
	Source: "Courtois, Heymans, Parnas, Concurrent control with readers and writers (1971): the second problem; " +
		"with leases by the server's clock",
	Sites:   locks.OneSite,
	Assumes: keepsKeys + doneInTime,
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Readers: true, Upgrades: true,
		Writers: true},
	Open: func(e locks.Env) (locks.Lock, error) { return newReadWrite(e, readEnter), nil },
}

func newReadWrite(e locks.Env, enter *redis.Script) *readWriteLock {
	return &readWriteLock{leaseLock: leaseLock{e.Sites[0]}, rand: e.Rand, waiting: map[string]string{}, enter: enter}
}

type readWriteLock struct {
	leaseLock
	rand    *rand.Rand
	waiting map[string]string // key -> token of this worker while it waits to write
	enter   *redis.Script     // script of readers
}

// polls is the mean pause between two tries.
const polls = 5 * time.Millisecond

// serverTime is Lua code that sets the variable now to the server's clock in ms.
const serverTime = `
local t = redis.call("TIME")
local now = t[1] * 1000 + math.floor(t[2] / 1000)
`

// serverNow is serverTime, and also removes the readers whose leases have ended.
const serverNow = serverTime + `redis.call("ZREMRANGEBYSCORE", KEYS[2], "-inf", now)
`

// KEYS of these scripts: the lock, the readers and the waiting writers. ARGV: the token and the lease in ms.
var (
	readEnter = redis.NewScript(serverNow + `
if redis.call("EXISTS", KEYS[1]) == 1 or redis.call("ZCOUNT", KEYS[3], "(" .. now, "+inf") > 0 then
	return 0
end` + addReader)
	writeEnter = redis.NewScript(serverNow + `
if redis.call("EXISTS", KEYS[1]) == 1 or redis.call("ZCARD", KEYS[2]) > 0 then
	redis.call("ZADD", KEYS[3], now + ARGV[2], ARGV[1])
	if redis.call("PTTL", KEYS[3]) < tonumber(ARGV[2]) then redis.call("PEXPIRE", KEYS[3], ARGV[2]) end
	return 0
end
redis.call("ZREM", KEYS[3], ARGV[1])
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return 1`)
	// readExtend returns 0 if the reader has lost its hold.
	readExtend = redis.NewScript(serverNow + `
if not redis.call("ZSCORE", KEYS[2], ARGV[1]) then return 0 end` + addReader)
	readLeave = redis.NewScript(serverNow + `
return redis.call("ZREM", KEYS[2], ARGV[1])`)
	// becomeWriter returns 1 if the reader is the writer now. 0 = there are other readers; -1 = the reader's hold is
	// lost.
	becomeWriter = redis.NewScript(serverNow + `
if not redis.call("ZSCORE", KEYS[2], ARGV[1]) then return -1 end
if redis.call("ZCARD", KEYS[2]) > 1 then return 0 end
redis.call("DEL", KEYS[2])
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return 1`)
)

const addReader = `
redis.call("ZADD", KEYS[2], now + ARGV[2], ARGV[1])
if redis.call("PTTL", KEYS[2]) < tonumber(ARGV[2]) then redis.call("PEXPIRE", KEYS[2], ARGV[2]) end
return 1`

func readWriteKeys(key string) []string {
	return []string{key, sibling("readers", key), sibling("writers", key)}
}

func (l *readWriteLock) run(ctx context.Context, s *redis.Script, lease locks.Lease, ttl time.Duration) (int64, error) {
	return s.Run(ctx, l.client, readWriteKeys(lease.Key), lease.Token, max(ttl.Milliseconds(), 1)).Int64()
}

// Acquire takes the lock for writing. A refused caller becomes a waiting writer, for the length of a lease. Each
// further try renews this place.
func (l *readWriteLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: l.waiting[key]}
	if lease.Token == "" {
		lease.Token = crand.Text()
	}
	call := time.Now()
	err := granted(l.run(ctx, writeEnter, lease, ttl))
	if delete(l.waiting, key); err == locks.ErrBusy {
		l.waiting[key] = lease.Token
	}
	return from(lease, call, ttl, err)
}

func (l *readWriteLock) AcquireShare(ctx context.Context, key string, ttl time.Duration, _ int) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: crand.Text(), Permits: 1}
	call := time.Now()
	return from(lease, call, ttl, granted(l.run(ctx, l.enter, lease, ttl)))
}

func (l *readWriteLock) Upgrade(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	switch n, err := l.run(ctx, becomeWriter, lease, ttl); {
	case err != nil:
		return lease, err
	case n < 0:
		return lease, locks.ErrLost
	case n == 0:
		return lease, locks.ErrBusy
	}
	lease.Permits = 0
	return from(lease, call, ttl, nil)
}

func (l *readWriteLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	if lease.Permits == 0 {
		return l.leaseLock.Extend(ctx, lease, ttl)
	}
	call := time.Now()
	return from(lease, call, ttl, owned(l.run(ctx, readExtend, lease, ttl)))
}

func (l *readWriteLock) Release(ctx context.Context, lease locks.Lease) error {
	if lease.Permits == 0 {
		return l.leaseLock.Release(ctx, lease)
	}
	return owned(l.run(ctx, readLeave, lease, 0))
}

// Wait pauses before the next try. If ctx ends during the pause, the worker is no longer a waiting writer.
func (l *readWriteLock) Wait(ctx context.Context, key string) (history.Wake, error) {
	err := pause(ctx, polls/2+time.Duration(l.rand.Int64N(int64(polls))))
	token := l.waiting[key]
	if err == nil || token == "" {
		return history.Poll, err
	}
	delete(l.waiting, key)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxSiteTimeout)
	defer cancel()
	return history.Poll, l.client.ZRem(ctx, sibling("writers", key), token).Err()
}
