package catalogue

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var reentrant = locks.Spec{
	Name:    "reentrant",
	Doc:     "a hash with the owner as its field and the number of its holds as the value; any command may be repeated",
	Source:  "Redisson, RLock: its keys, channel and unlock latch",
	Sites:   locks.OneSite,
	Assumes: keepsKeys + doneInTime,
	Claims:  history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Reentrant: true},
	Open:    func(e locks.Env) (locks.Lock, error) { return newReentrant(e), nil },
}

// reentrantLock sends the number of holds that it wants to have, not "one more" or "one less". So it can safely
// repeat or undo a command whose reply was lost. Owner names have the form of Redisson's thread names; each
// outermost hold has a new one.
type reentrantLock struct {
	client redis.UniversalClient
	within string                 // see locks.Env
	id     string                 // of this worker
	outer  int64                  // number of outermost holds so far
	held   map[string]locks.Lease // by key
	spent  map[string][]string    // by key: latches whose releases were answered; to be deleted
}

func newReentrant(e locks.Env) *reentrantLock {
	return &reentrantLock{client: e.Sites[0], within: e.Within, id: uuid(), held: map[string]locks.Lease{},
		spent: map[string][]string{}}
}

// uuid returns a random UUID, version 4.
func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// enter returns 1 if the owner now has the given number of holds, and 0 if another worker holds the lock. It returns
// -1 if this is a re-entry and the outer hold is lost. KEYS: the lock and old latches to delete. ARGV: the owner,
// the lease in ms and the number of holds.
var enter = redis.NewScript(`
for i = 2, #KEYS do redis.call("DEL", KEYS[i]) end
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then
	if tonumber(ARGV[3]) > 1 then return -1 end
	if redis.call("EXISTS", KEYS[1]) == 1 then return 0 end
end
redis.call("HSET", KEYS[1], ARGV[1], ARGV[3])
redis.call("PEXPIRE", KEYS[1], ARGV[2])
return 1`)

// leave returns 1, or -1 if the owner did not hold the lock. KEYS: the lock, the channel and the latch, a key that
// marks this release as done. If the reply is lost and the release is repeated, the latch makes it return 1 again.
// ARGV: the owner, the number of holds that remain, and the TTL of the latch in ms.
var leave = redis.NewScript(`
if redis.call("EXISTS", KEYS[3]) == 1 then return 1 end
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then return -1 end
if tonumber(ARGV[2]) > 0 then
	redis.call("HSET", KEYS[1], ARGV[1], ARGV[2])
else
	redis.call("DEL", KEYS[1])
	redis.call("PUBLISH", KEYS[2], "0")
end
redis.call("SET", KEYS[3], ARGV[2], "PX", ARGV[3])
return 1`)

// stay extends the lease; 0 = the owner does not hold the lock. KEYS: the lock. ARGV: the owner and the lease in ms.
var stay = redis.NewScript(
	`if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 1 then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) end return 0`)

const (
	redissonChannel = "redisson_lock__channel"
	redissonLatch   = "redisson_unlock_latch"
	latchLife       = 5 * time.Second
)

func (l *reentrantLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, inside := l.held[key]
	if !inside {
		l.outer++
		lease = locks.Lease{Key: key, Token: fmt.Sprintf("%s:%d", l.id, l.outer)}
	}
	lease.Count++
	keys := append([]string{key}, l.spent[key]...)
	call := time.Now()
	n, err := enter.Run(ctx, l.client, keys, lease.Token, ttl.Milliseconds(), lease.Count).Int()
	if err != nil {
		return lease, err
	}
	delete(l.spent, key)
	switch n {
	case 0:
		return lease, locks.ErrBusy
	case -1:
		delete(l.held, key)
		return lease, locks.ErrLost
	}
	lease.Until = locks.Until(call, ttl)
	l.held[key] = lease
	return lease, nil
}

func (l *reentrantLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	err := owned(stay.Run(ctx, l.client, []string{lease.Key}, lease.Token, ttl.Milliseconds()).Int64())
	return from(lease, call, ttl, err)
}

func (l *reentrantLock) Release(ctx context.Context, lease locks.Lease) error {
	left := max(lease.Count-1, 0)
	if left == 0 {
		delete(l.held, lease.Key)
	} else if held, ok := l.held[lease.Key]; ok && held.Token == lease.Token {
		held.Count = left
		l.held[lease.Key] = held
	}
	latch := fmt.Sprintf("%s:%s:%d", redissonSibling(l.within, redissonLatch, lease.Key), lease.Token, lease.Count)
	n, err := leave.Run(ctx, l.client, []string{lease.Key, redissonSibling(l.within, redissonChannel, lease.Key),
		latch},
		lease.Token, left, latchLife.Milliseconds()).Int()
	if err != nil {
		return err
	}
	if n < 0 {
		delete(l.held, lease.Key)
		return locks.ErrLost
	}
	l.spent[lease.Key] = append(l.spent[lease.Key], latch)
	return nil
}

func (l *reentrantLock) Close() error { return nil }
