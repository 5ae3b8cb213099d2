package catalogue

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var fair = locks.Spec{
	Name: "fair",
	Doc: "lease with a queue: first come, first served; a waiter not heard of for a lease is dropped; " +
		"by the server's clock",
	Source:  "Redisson, getFairLock",
	Sites:   locks.OneSite,
	Assumes: keepsKeys + doneInTime + "; waiters try again in time",
	Claims:  history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Ordered: true, Wakes: true},
	Listens: true,
	Open:    func(e locks.Env) (locks.Lock, error) { return newFair(e), nil },
}

func newFair(e locks.Env) *fairLock {
	return &fairLock{leaseLock: leaseLock{e.Sites[0]}, places: map[string]place{}, enter: queueUp,
		waiting: waiting{client: e.Sites[0], process: e.Process}}
}

// heartbeats is the number of tries of a waiter during one lease. Other waiters remove a waiter that has not tried
// for a whole lease.
const heartbeats = 3

type fairLock struct {
	leaseLock
	waiting
	places map[string]place // by key
	enter  *redis.Script
}

// place is a worker's place in a queue. Its token becomes the token of the hold when the lock is granted.
type place struct {
	token string
	ttl   time.Duration
}

// queueUp returns 1 if the lock is granted; otherwise it queues the caller and returns 0. KEYS: the lock, the queue
// and the waiters' times. ARGV: the token and the lease in ms.
//
// A waiter at the head of the queue is removed if it has not tried for the length of a lease.
var queueUp = redis.NewScript(`
local t = redis.call("TIME")
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local head = redis.call("LINDEX", KEYS[2], 0)
while head and head ~= ARGV[1] do
	local alive = redis.call("ZSCORE", KEYS[3], head)
	if alive and tonumber(alive) > now then break end
	redis.call("LPOP", KEYS[2])
	redis.call("ZREM", KEYS[3], head)
	head = redis.call("LINDEX", KEYS[2], 0)
end
if redis.call("EXISTS", KEYS[1]) == 0 and (not head or head == ARGV[1]) then
	redis.call("LPOP", KEYS[2])
	redis.call("ZREM", KEYS[3], ARGV[1])
	redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
	return 1
end
if redis.call("ZADD", KEYS[3], now + ARGV[2], ARGV[1]) == 1 then
	redis.call("RPUSH", KEYS[2], ARGV[1])
end
for i = 2, 3 do
	if redis.call("PTTL", KEYS[i]) < tonumber(ARGV[2]) then redis.call("PEXPIRE", KEYS[i], ARGV[2]) end
end
return 0`)

// leaveQueue releases the caller's lock, or removes the caller from the queue. It returns 1 if the caller held the
// lock. If the lock is free afterwards, leaveQueue wakes the first waiter. KEYS: the lock, the queue and the
// waiters' times. ARGV: the token and the channel.
var leaveQueue = redis.NewScript(`
local ours = 0
if redis.call("GET", KEYS[1]) == ARGV[1] then ours = redis.call("DEL", KEYS[1]) end
if redis.call("ZREM", KEYS[3], ARGV[1]) == 1 then redis.call("LREM", KEYS[2], 1, ARGV[1]) end
if redis.call("EXISTS", KEYS[1]) == 0 then
	local head = redis.call("LINDEX", KEYS[2], 0)
	if head then redis.call("PUBLISH", ARGV[2] .. ":" .. head, "0") end
end
return ours`)

// turn returns the rest of the holder's lease in ms, or -2 if the lock is free. It returns -1 if the caller is not
// the first in the queue. KEYS: the lock and the queue. ARGV: the token.
var turn = redis.NewScript(`
if redis.call("LINDEX", KEYS[2], 0) ~= ARGV[1] then return -1 end
return redis.call("PTTL", KEYS[1])`)

const (
	fairChannel = "fair_wake"
	fairQueue   = "fair_queue"
	fairTimes   = "fair_times"
)

func fairKeys(key string) []string {
	return []string{key, sibling(fairQueue, key), sibling(fairTimes, key)}
}

func (l *fairLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	p, standing := l.places[key]
	if !standing {
		p.token = rand.Text()
	}
	p.ttl = ttl
	l.places[key] = p
	lease := locks.Lease{Key: key, Token: p.token}
	call := time.Now()
	err := granted(l.enter.Run(ctx, l.leaseLock.client, fairKeys(key), p.token, ttl.Milliseconds()).Int64())
	if err != locks.ErrBusy {
		delete(l.places, key) // after an error the lock may have been granted, and the caller releases this token
	}
	return from(lease, call, ttl, err)
}

func (l *fairLock) Release(ctx context.Context, lease locks.Lease) error {
	return owned(leaveQueue.Run(ctx, l.leaseLock.client, fairKeys(lease.Key), lease.Token,
		sibling(fairChannel, lease.Key)).Int64())
}

// Wait returns when a release wakes this waiter or when the holder's lease ends. It also returns in time for the
// next try, which shows other waiters that this one is alive.
func (l *fairLock) Wait(ctx context.Context, key string) (history.Wake, error) {
	p, standing := l.places[key]
	if !standing {
		return history.Poll, nil
	}
	wake, err := l.wait(ctx, sibling(fairChannel, key)+":"+p.token,
		func(ctx context.Context) (time.Duration, history.Wake, error) {
			left, err := turn.Run(ctx, l.leaseLock.client, fairKeys(key)[:2], p.token).Int64()
			beat := p.ttl / heartbeats
			if err != nil || left == int64(gone) {
				return gone, history.Poll, err
			}
			if left := time.Duration(left) * time.Millisecond; left >= 0 && left < beat {
				return left, history.LeaseEnd, nil
			}
			return beat, history.Poll, nil
		})
	if ctx.Err() != nil {
		delete(l.places, key)
		left, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.ttl)
		defer cancel()
		if gone := l.Release(left, locks.Lease{Key: key, Token: p.token}); !errors.Is(gone, locks.ErrLost) {
			err = errors.Join(err, gone)
		}
		// An error is returned even if a message came, because the worker has left the queue.
		return wake, errors.Join(ctx.Err(), err)
	}
	return wake, err
}

func (l *fairLock) Close() error { return l.waiting.close() }
