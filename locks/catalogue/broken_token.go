package catalogue

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var weakToken = locks.Spec{
	Name:   "weak-token",
	Doc:    "lease with the host's name and the process number for a token",
	Source: "locks that store who holds them, for people to read",
	Sites:  locks.OneSite,
	Broken: "all workers of a process have the same token: a late holder's release passes the comparison",
	Expect: []locks.Expectation{{Cause: history.ForeignRelease}},
	Claims: lease.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		host, err := os.Hostname()
		return &weakTokenLock{leaseLock{e.Sites[0]}, host + ":" + strconv.Itoa(os.Getpid())}, err
	},
}

type weakTokenLock struct {
	leaseLock
	token string
}

func (l *weakTokenLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return l.take(ctx, locks.Lease{Key: key, Token: l.token}, ttl)
}

var keptToken = locks.Spec{
	Name:   "kept-token",
	Doc:    "lease as one object, which several workers may use; it remembers the token of its last grant",
	Source: "redis-py, documentation of Lock: what thread_local is for",
	Sites:  locks.OneSite,
	Broken: "the object has one token: who is granted a lock while another worker holds one gives back with the " +
		"wrong token from then on",
	Expect: []locks.Expectation{{Cause: history.PrematureLoss, Scenario: "shared-object"},
		{Cause: history.ForeignRelease, Scenario: "shared-object"},
		{Cause: history.FalseRefusal, Scenario: "shared-object"}},
	Claims: lease.Claims,
	Shared: true,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &keptTokenLock{leaseLock: leaseLock{e.Sites[0]}, tokens: &sync.Map{}}, nil
	},
}

// keptTokenLock uses the token of its last grant instead of the caller's token. With byKey it keeps a token for each
// key.
type keptTokenLock struct {
	leaseLock
	tokens *sync.Map // by key; without byKey, the only key is ""
	byKey  bool
}

func (l *keptTokenLock) name(key string) string {
	if l.byKey {
		return key
	}
	return ""
}

func (l *keptTokenLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := l.leaseLock.Acquire(ctx, key, ttl)
	if err == nil {
		l.tokens.Store(l.name(key), lease.Token)
	}
	return lease, err
}

func (l *keptTokenLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	extended, err := l.leaseLock.Extend(ctx, l.own(lease), ttl)
	lease.Until = extended.Until
	return lease, err
}

func (l *keptTokenLock) Release(ctx context.Context, lease locks.Lease) error {
	return l.leaseLock.Release(ctx, l.own(lease))
}

// own returns the lease with the remembered token.
func (l *keptTokenLock) own(lease locks.Lease) locks.Lease {
	if token, ok := l.tokens.Load(l.name(lease.Key)); ok && !lease.Until.IsZero() {
		lease.Token = token.(string)
	}
	return lease
}

var sharedHandle = locks.Spec{
	Name:   "shared-handle",
	Doc:    "lease as one lock object for each key that all workers of a process share; the object keeps the token",
	Source: "redis-py issue 416, Lock instances shared by threads; aredis issue 119, by tasks",
	Sites:  locks.OneSite,
	Broken: "the object has the token of the last grant: a late holder releases its successor's lock with " +
		"the successor's token",
	Expect: []locks.Expectation{{Cause: history.ForeignRelease, Scenario: "late-holder"}},
	Claims: lease.Claims,
	Queues: true,
	Open: func(e locks.Env) (locks.Lock, error) {
		h, err := locks.Share(e.Process, handlesKey{}, func() (*handles, error) { return &handles{}, nil })
		return &sharedHandleLock{keptTokenLock{leaseLock{e.Sites[0]}, &h.tokens, true}, e.Process}, err
	},
}

// handles are the lock objects that a process shares. Only the token of each object is stored.
type handles struct{ tokens sync.Map } // by key

type handlesKey struct{}

func (*handles) Close() error { return nil }

type sharedHandleLock struct {
	keptTokenLock
	process *locks.Process
}

func (l *sharedHandleLock) Close() error { return l.process.Drop(handlesKey{}) }

var libRedislockToken = locks.Spec{
	Name:   "redislock-token",
	Doc:    "redislock with tokens of the user's own: host, process and the number of the worker",
	Source: "github.com/bsm/redislock v0.9.4, Options.Token; docs/FINDINGS.md",
	Sites:  locks.OneSite,
	Broken: "a token that another one begins with takes the lock from its holder: worker 1 from worker 12",
	Expect: []locks.Expectation{{Cause: history.DoubleGrant}},
	Claims: lease.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		host, err := os.Hostname()
		if err != nil {
			return nil, err
		}
		n, err := locks.Share(e.Process, redislockNumbers{}, func() (*numbers, error) { return &numbers{}, nil })
		if err != nil {
			return nil, err
		}
		l := &redislockLock{client: redislock.New(e.Sites[0]), held: map[string]*redislock.Lock{}}
		return &redislockTokenLock{l, e.Process, fmt.Sprintf("%s:%d:%d", host, os.Getpid(), n.last.Add(1))}, nil
	},
}

// numbers counts the workers of a process; each worker gets the next number.
type numbers struct{ last atomic.Int64 }

type redislockNumbers struct{}

func (*numbers) Close() error { return nil }

type redislockTokenLock struct {
	*redislockLock
	process *locks.Process
	token   string
}

func (l *redislockTokenLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return l.obtain(ctx, key, ttl, &redislock.Options{Token: l.token})
}

func (l *redislockTokenLock) Close() error { return l.process.Drop(redislockNumbers{}) }

var tokenTwice = locks.Spec{
	Name: "token-twice",
	Doc: "a list with one ticket: who pops it has the lock and pushes it back; that of a holder out of time is " +
		"put back by who comes next",
	Source: "redis-semaphore (Ruby) issue 10 and pull request 58",
	Sites:  locks.OneSite,
	Broken: "a late holder pushes a ticket that was put back already: from then on there are two of them",
	Expect: []locks.Expectation{{Cause: history.DoubleGrant}, {Cause: history.SilentReacquire}},
	Claims: history.Claims{Excludes: true, Expires: true},
	Open:   func(e locks.Env) (locks.Lock, error) { return &ticketLock{leaseLock{e.Sites[0]}}, nil },
}

type ticketLock struct{ leaseLock }

var (
	// popTicket takes the ticket. KEYS: the list with the ticket, the deadline of the ticket in use, and a mark that
	// the ticket was created once. ARGV: the lease in ms. All times are those of the server's clock.
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
func (l *ticketLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	err := granted(popTicket.Run(ctx, l.client, ticketKeys(key), ttl.Milliseconds()).Int64())
	return from(lease, call, ttl, err)
}

func (l *ticketLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	err := owned(moveDeadline.Run(ctx, l.client, ticketKeys(lease.Key)[1:2], ttl.Milliseconds()).Int64())
	return from(lease, call, ttl, err)
}

func (l *ticketLock) Release(ctx context.Context, lease locks.Lease) error {
	if lease.Until.IsZero() {
		return nil // without a reply we may have no ticket; a lost one comes back after its deadline
	}
	return pushTicket.Run(ctx, l.client, ticketKeys(lease.Key)[:2]).Err()
}
