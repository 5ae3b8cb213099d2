package catalogue

import (
	"context"
	"crypto/rand"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var multi = locks.Spec{
	Name:    "multi",
	Doc:     "three keys at once, all or nothing, by one script",
	Source:  "Redisson, getMultiLock, in one slot and so in one step",
	Sites:   locks.OneSite,
	Assumes: keepsKeys + doneInTime,
	Claims:  history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true},
	Shared:  true,
	Open:    func(e locks.Env) (locks.Lock, error) { return &multiLock{e.Sites[0]}, nil },
}

type multiLock struct{ client redis.UniversalClient }

// multiKeys is how many keys a hold takes: the lock's own and siblings of it.
const multiKeys = 3

func parts(key string) []string {
	keys := []string{key}
	for i := 1; i < multiKeys; i++ {
		keys = append(keys, sibling("part"+strconv.Itoa(i), key))
	}
	return keys
}

var (
	takeAll = redis.NewScript(`
for _, key in ipairs(KEYS) do if redis.call("EXISTS", key) == 1 then return 0 end end
for _, key in ipairs(KEYS) do redis.call("SET", key, ARGV[1], "PX", ARGV[2]) end
return 1`)
	extendAll = redis.NewScript(`
for _, key in ipairs(KEYS) do if redis.call("GET", key) ~= ARGV[1] then return 0 end end
for _, key in ipairs(KEYS) do redis.call("PEXPIRE", key, ARGV[2]) end
return 1`)
	// What is left of a hold that has lost a key is given back all the same.
	deleteAll = redis.NewScript(`
local all = 1
for _, key in ipairs(KEYS) do
	if redis.call("GET", key) == ARGV[1] then redis.call("DEL", key) else all = 0 end
end
return all`)
)

func (l *multiLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	err := granted(takeAll.Run(ctx, l.client, parts(key), lease.Token, ttl.Milliseconds()).Int64())
	return from(lease, call, ttl, err)
}

func (l *multiLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	err := owned(extendAll.Run(ctx, l.client, parts(lease.Key), lease.Token, ttl.Milliseconds()).Int64())
	return from(lease, call, ttl, err)
}

func (l *multiLock) Release(ctx context.Context, lease locks.Lease) error {
	return owned(deleteAll.Run(ctx, l.client, parts(lease.Key), lease.Token).Int64())
}

func (l *multiLock) Close() error { return nil }
