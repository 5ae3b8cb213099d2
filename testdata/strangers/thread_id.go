package locks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

// ThoughtWire/hazelcast-locks issue 5; Redisson issue 2869 asks about the same: the owner is the number of the thread, which other
// processes have as well.
var threadID = Spec{
	Name: "thread-id", Doc: "reentrant hash whose field is the number of the thread", Source: "hazelcast-locks issue 5; Redisson issue 2869", Sites: OneSite,
	Broken: "threads with the same number in two processes are one owner",
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Reentrant: true},
	Open: func(e Env) (Lock, error) {
		return &threadLock{client: e.Sites[0], thread: fmt.Sprint("thread-", threadOf(e.Process))}, nil
	},
}

var threads = struct {
	sync.Mutex
	next map[*Process]int
}{next: map[*Process]int{}}

func threadOf(p *Process) int {
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

func (l *threadLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease := Lease{Key: key, Token: l.thread}
	call := time.Now()
	n, err := threadEnter.Run(ctx, l.client, []string{key}, l.thread, ttl.Milliseconds()).Int64()
	lease.Count = n
	return lease.from(call, ttl, granted(n, err))
}

func (l *threadLock) Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	call := time.Now()
	err := owned(stay.Run(ctx, l.client, []string{lease.Key}, l.thread, ttl.Milliseconds()).Int64())
	return lease.from(call, ttl, err)
}

func (l *threadLock) Release(ctx context.Context, lease Lease) error {
	n, err := threadLeave.Run(ctx, l.client, []string{lease.Key}, l.thread).Int64()
	if err == nil && n < 0 {
		return ErrLost
	}
	return err
}

func (l *threadLock) Close() error { return nil }
