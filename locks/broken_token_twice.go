package locks

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var tokenTwice = Spec{
	Name:   "token-twice",
	Doc:    "a list with one ticket: who pops it has the lock and pushes it back; that of a holder out of time is put back by who comes next",
	Source: "redis-semaphore (Ruby) issue 10 and pull request 58",
	Sites:  OneSite,
	Broken: "a late holder pushes a ticket that was put back already: from then on there are two of them",
	Expect: []Expectation{{Cause: history.DoubleGrant}, {Cause: history.SilentReacquire}},
	Claims: history.Claims{Excludes: true, Expires: true},
	Open:   func(e Env) (Lock, error) { return &ticketLock{leaseLock{e.Sites[0]}}, nil },
}

type ticketLock struct{ leaseLock }

var (
	// popTicket: tickets, deadline of the one that is out, whether there ever was one; lease. By the server's clock.
	popTicket = redis.NewScript(`
local t = redis.call("TIME")
local now = t[1] * 1000 + math.floor(t[2] / 1000)
if redis.call("SETNX", KEYS[3], "1") == 1 then redis.call("RPUSH", KEYS[1], "1") end
local out = redis.call("GET", KEYS[2])
if out and tonumber(out) < now then
	redis.call("DEL", KEYS[2])
	redis.call("RPUSH", KEYS[1], "1")
end
if not redis.call("LPOP", KEYS[1]) then return 0 end
redis.call("SET", KEYS[2], now + ARGV[1])
return 1`)
	moveDeadline = redis.NewScript(`
local t = redis.call("TIME")
if redis.call("EXISTS", KEYS[1]) == 0 then return 0 end
redis.call("SET", KEYS[1], t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[1])
return 1`)
	pushTicket = redis.NewScript(`redis.call("DEL", KEYS[2]) return redis.call("RPUSH", KEYS[1], "1")`)
)

func ticketKeys(key string) []string { return []string{key, sibling("out", key), sibling("made", key)} }
func (l *ticketLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease := Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	err := granted(popTicket.Run(ctx, l.client, ticketKeys(key), ttl.Milliseconds()).Int64())
	return lease.from(call, ttl, err)
}

func (l *ticketLock) Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	call := time.Now()
	err := owned(moveDeadline.Run(ctx, l.client, ticketKeys(lease.Key)[1:2], ttl.Milliseconds()).Int64())
	return lease.from(call, ttl, err)
}

func (l *ticketLock) Release(ctx context.Context, lease Lease) error {
	if lease.Until.IsZero() {
		return nil // no ticket was heard of: it comes back when its time is over
	}
	return pushTicket.Run(ctx, l.client, ticketKeys(lease.Key)[:2]).Err()
}
