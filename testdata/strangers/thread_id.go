package catalogue

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

// ThoughtWire/hazelcast-locks issue 5; Redisson issue 2869 asks about the same: the owner is the number of the thread,
// which other processes have as well.
var threadID = locks.Spec{
	Name: "thread-id", Doc: "reentrant hash whose field is the number of the thread", Source: "hazelcast-locks issue " +
		"5; Redisson issue 2869", Sites: locks.OneSite,
	Broken: "threads with the same number in two processes are one owner",
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Reentrant: true},
	Open: func(e locks.Env) (locks.Lock, error) {
		return &threadLock{client: e.Sites[0], thread: fmt.Sprint("thread-", threadOf(e.Process))}, nil
	},
}

var threads = struct {
	sync.Mutex
	next map[*locks.Process]int
}{next: map[*locks.Process]int{}}

func threadOf(p *locks.Process) int {
	threads.Lock()
	defer threads.Unlock()
	threads.next[p]++
	return threads.next[p]
}

type threadLock struct {
	client redis.UniversalClient
	thread string
}

var (
	threadEnter = redis.NewScript(`
if redis.call("EXISTS", KEYS[1]) == 0 or redis.call("HEXISTS", KEYS[1], ARGV[1]) == 1 then
	local n = redis.call("HINCRBY", KEYS[1], ARGV[1], 1)
	redis.call("PEXPIRE", KEYS[1], ARGV[2])
	return n
end
return 0`)
	threadLeave = redis.NewScript(`
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then return -1 end
local n = redis.call("HINCRBY", KEYS[1], ARGV[1], -1)
if n == 0 then redis.call("DEL", KEYS[1]) end
return n`)
)

func (l *threadLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: l.thread}
	call := time.Now()
	n, err := threadEnter.Run(ctx, l.client, []string{key}, l.thread, ttl.Milliseconds()).Int64()
	lease.Count = n
	return from(lease, call, ttl, granted(n, err))
}

func (l *threadLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	err := owned(stay.Run(ctx, l.client, []string{lease.Key}, l.thread, ttl.Milliseconds()).Int64())
	return from(lease, call, ttl, err)
}

func (l *threadLock) Release(ctx context.Context, lease locks.Lease) error {
	n, err := threadLeave.Run(ctx, l.client, []string{lease.Key}, l.thread).Int64()
	if err == nil && n < 0 {
		return locks.ErrLost
	}
	return err
}

func (l *threadLock) Close() error { return nil }
