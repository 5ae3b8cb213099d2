package catalogue

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var redissonRW = locks.Spec{
	Name: "redisson-rw",
	Doc: "a hash with the mode, and a field for each reader or for the writer; each reader has a key with its lease, " +
		"the hash lives as long as " +
		"the longest; readers go first",
	Source:  "Redisson, RReadWriteLock: its keys and channel, with a lease given; not reentrant here",
	Sites:   locks.OneSite,
	Assumes: keepsKeys + doneInTime,
	Claims:  history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Readers: true},
	Open:    func(e locks.Env) (locks.Lock, error) { return newRedissonRW(e, rwRead, rwReadLeave), nil },
}

func newRedissonRW(e locks.Env, enter, leave *redis.Script) *redissonRWLock {
	return &redissonRWLock{client: e.Sites[0], within: e.Within, id: uuid(), enter: enter, leave: leave}
}

// redissonRWLock is Redisson's readers-writer lock. Each hold has a new owner name, in the form of Redisson's thread
// names.
type redissonRWLock struct {
	client redis.UniversalClient
	within string // prefix, see locks.Env
	id     string // of this worker
	holds  int64
	enter  *redis.Script // script of readers
	leave  *redis.Script // script of readers
}

// KEYS of these scripts: the lock, the reader's own key and the channel. ARGV: the owner, the lease in ms, and the
// beginning and the end of the names of readers' keys. A script that takes the lock returns 0 if another worker
// holds it. The other scripts return 0 if the hold is lost.
var (
	rwRead = redis.NewScript(`
local mode = redis.call("HGET", KEYS[1], "mode")
if mode == "write" then return 0 end
if not mode then redis.call("HSET", KEYS[1], "mode", "read") end
redis.call("HSET", KEYS[1], ARGV[1], 1)
redis.call("SET", KEYS[2], 1, "PX", ARGV[2])
if redis.call("PTTL", KEYS[1]) < tonumber(ARGV[2]) then redis.call("PEXPIRE", KEYS[1], ARGV[2]) end
return 1`)
	rwReadExtend = redis.NewScript(`
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 or redis.call("PEXPIRE", KEYS[2], ARGV[2]) == 0 then return 0 end
if redis.call("PTTL", KEYS[1]) < tonumber(ARGV[2]) then redis.call("PEXPIRE", KEYS[1], ARGV[2]) end
return 1`)
	// rwReadLeave also shortens the TTL of the lock: it becomes that of the remaining reader whose lease ends last.
	rwReadLeave = redis.NewScript(`
local ours = redis.call("DEL", KEYS[2])
if redis.call("HDEL", KEYS[1], ARGV[1]) == 0 then return 0 end
local longest = 0
for _, owner in ipairs(redis.call("HKEYS", KEYS[1])) do
	if owner ~= "mode" then
		local left = redis.call("PTTL", ARGV[3] .. owner .. ARGV[4])
		if left > longest then longest = left end
		if left < 0 then redis.call("HDEL", KEYS[1], owner) end
	end
end
if longest > 0 then
	redis.call("PEXPIRE", KEYS[1], longest)
else
	redis.call("DEL", KEYS[1])
	redis.call("PUBLISH", KEYS[3], "0")
end
return ours`)
	rwWrite = redis.NewScript(`
if redis.call("EXISTS", KEYS[1]) == 1 then return 0 end
redis.call("HSET", KEYS[1], "mode", "write", ARGV[1], 1)
redis.call("PEXPIRE", KEYS[1], ARGV[2])
return 1`)
	rwWriteExtend = redis.NewScript(`
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call("PEXPIRE", KEYS[1], ARGV[2])`)
	rwWriteLeave = redis.NewScript(`
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call("DEL", KEYS[1])
redis.call("PUBLISH", KEYS[3], "0")
return 1`)
)

const (
	rwChannel = "redisson_rwlock"
	rwTimeout = ":rwlock_timeout:1"
)

func (l *redissonRWLock) run(ctx context.Context, s *redis.Script, lease locks.Lease, ttl time.Duration) (int64,
	error) {
	keys := []string{lease.Key, sibling(lease.Token+rwTimeout, lease.Key),
		redissonSibling(l.within, rwChannel, lease.Key)}
	return s.Run(ctx, l.client, keys, lease.Token, max(ttl.Milliseconds(), 1), sibling("", lease.Key),
		rwTimeout).Int64()
}

// take makes one try, with a new owner name.
func (l *redissonRWLock) take(ctx context.Context, s *redis.Script, lease locks.Lease, suffix string,
	ttl time.Duration) (locks.Lease, error) {
	l.holds++
	lease.Token = fmt.Sprintf("%s:%d%s", l.id, l.holds, suffix)
	call := time.Now()
	return from(lease, call, ttl, granted(l.run(ctx, s, lease, ttl)))
}

func (l *redissonRWLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return l.take(ctx, rwWrite, locks.Lease{Key: key}, ":write", ttl)
}

func (l *redissonRWLock) AcquireShare(ctx context.Context, key string, ttl time.Duration, _ int) (locks.Lease, error) {
	return l.take(ctx, l.enter, locks.Lease{Key: key, Permits: 1}, "", ttl)
}

func (l *redissonRWLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	s := rwWriteExtend
	if lease.Permits > 0 {
		s = rwReadExtend
	}
	call := time.Now()
	return from(lease, call, ttl, owned(l.run(ctx, s, lease, ttl)))
}

func (l *redissonRWLock) Release(ctx context.Context, lease locks.Lease) error {
	s := rwWriteLeave
	if lease.Permits > 0 {
		s = l.leave
	}
	return owned(l.run(ctx, s, lease, 0))
}

func (l *redissonRWLock) Close() error { return nil }
