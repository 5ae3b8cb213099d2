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

// reentrantLock sends the number of holds that it wants to have, not "one more" or "one less". So a command whose
// reply was lost can be repeated or undone safely. Owners are named as Redisson names threads, and each outermost
// hold has its own number.
type reentrantLock struct {
	client redis.UniversalClient
	within string                 // see locks.Env
	id     string                 // of this worker
	outer  int64                  // number of outermost holds so far
	held   map[string]locks.Lease // by key
	spent  map[string][]string    // key -> latches that the server can delete, because their replies have arrived
}

func newReentrant(e locks.Env) *reentrantLock {
	return &reentrantLock{client: e.Sites[0], within: e.Within, id: uuid(), held: map[string]locks.Lease{},
		spent: map[string][]string{}}
}

// uuid makes a random UUID, version 4.
func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// enter has the keys lock, spent latches and the arguments owner, lease (ms), number of holds. It returns 1 if these
// holds are granted, 0 if another worker holds the lock, and -1 if the outer hold of a re-entry is lost.
var enter = redis.NewScript(`
for i = 2, #KEYS do redis.call("DEL", KEYS[i]) end
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then
	if tonumber(ARGV[3]) > 1 then return -1 end
	if redis.call("EXISTS", KEYS[1]) == 1 then return 0 end
end
redis.call("HSET", KEYS[1], ARGV[1], ARGV[3])
redis.call("PEXPIRE", KEYS[1], ARGV[2])
return 1`)

// leave has the keys lock, channel, latch and the arguments owner, remaining number of holds, TTL of the latch (ms).
// It returns 1, or -1 if the owner did not hold the lock. The latch stores that the release was done, in case the
// reply is lost.
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

// stay has the key lock and the arguments owner, lease (ms). It extends the lease.
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
