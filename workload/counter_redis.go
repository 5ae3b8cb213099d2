package workload

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var RedisCounter = CounterSpec{
	Name: "redis",
	Doc:  "a single Redis of its own that no fault touches",
	Open: openRedis,
}

// RedisFenced is RedisCounter with a fence.
var RedisFenced = CounterSpec{
	Name:   "redis-fenced",
	Doc:    "the same, with a script that writes only with a fencing token greater than any before",
	Fenced: true,
	Open:   openRedisFenced,
}

func openRedis(e CounterEnv) (Counter, error) { return redisCounter{e.Client}, nil }

func openRedisFenced(e CounterEnv) (Counter, error) {
	return redisFencedCounter{redisCounter{e.Client}}, nil
}

// redisCounter stores each page's count in a string key.
type redisCounter struct{ client redis.UniversalClient }

func (r redisCounter) Load(ctx context.Context, page string) (Count, error) {
	return loadFrom(ctx, r.client, page)
}

func loadFrom(ctx context.Context, client redis.Cmdable, page string) (Count, error) {
	return countIn(client.Get(ctx, page))
}

func countIn(answer *redis.StringCmd) (Count, error) {
	text, err := answer.Result()
	if errors.Is(err, redis.Nil) {
		return Count{}, nil
	}
	if err != nil {
		return Count{}, err
	}
	return parseCount(text)
}

func (r redisCounter) LoadAll(ctx context.Context, pages []string) ([]Count, error) {
	answers := make([]*redis.StringCmd, len(pages))
	_, _ = r.client.Pipelined(ctx, func(p redis.Pipeliner) error { // each reply has its own error
		for i, page := range pages {
			answers[i] = p.Get(ctx, page)
		}
		return nil
	})
	counts := make([]Count, len(pages))
	for i, answer := range answers {
		var err error
		if counts[i], err = countIn(answer); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

func (r redisCounter) Store(ctx context.Context, page string, c Count) error {
	return r.client.Set(ctx, page, c.text(false), 0).Err()
}

func (redisCounter) Close() error { return nil }

// addOne increments the count. It returns the old value: the count, and the ID of the operation that wrote it.
var addOne = redis.NewScript(`
local old = redis.call("GET", KEYS[1])
local views = old and tonumber(string.match(old, "^%d+")) or 0
redis.call("SET", KEYS[1], string.format("%d %s", views + 1, ARGV[1]))
return old or ""`)

func (r redisCounter) Add(ctx context.Context, page string, writer history.ID) (Count, error) {
	text, err := addOne.Run(ctx, r.client, []string{page}, uint64(writer)).Text()
	if err != nil || text == "" {
		return Count{}, err
	}
	return parseCount(text)
}

func (r redisCounter) Transact(ctx context.Context, page string, visit func(Count, func(Count) error) error) error {
	return r.client.Watch(ctx, func(tx *redis.Tx) error {
		seen, err := loadFrom(ctx, tx, page)
		if err != nil {
			return err
		}
		return visit(seen, func(c Count) error {
			_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Set(ctx, page, c.text(false), 0)
				return nil
			})
			if errors.Is(err, redis.TxFailedErr) {
				return locks.ErrConflict
			}
			return err
		})
	}, page)
}

// redisFencedCounter stores the last fencing token with the count. One script compares the tokens and writes.
type redisFencedCounter struct{ redisCounter }

// storeIfNewer compares tokens as numbers. Lua's numbers are exact up to 2^53, and tokens are far below that. Each
// holder stores once, so a second store with the same token comes from another holder. It is rejected.
var storeIfNewer = redis.NewScript(`
local old = redis.call("GET", KEYS[1])
local fence = old and tonumber(string.match(old, "%d+$")) or 0
if tonumber(ARGV[2]) <= fence then return 0 end
redis.call("SET", KEYS[1], ARGV[1])
return 1`)

func (r redisFencedCounter) Store(ctx context.Context, page string, c Count) error {
	return accepted(storeIfNewer.Run(ctx, r.client, []string{page}, c.text(true), c.Fence).Int64())
}

// loadIfNewer returns false if the holder's token is not greater than the stored token. Otherwise it returns the
// count, and sets the stored token to the holder's token minus one, so that the holder can still store.
var loadIfNewer = redis.NewScript(`
local old = redis.call("GET", KEYS[1]) or "0 0 0"
local count, fence = string.match(old, "^(%d+ %d+) (%d+)$")
if tonumber(ARGV[1]) < tonumber(fence) then return false end
redis.call("SET", KEYS[1], count .. " " .. ARGV[1])
return old`)

func (r redisFencedCounter) LoadFor(ctx context.Context, page string, fence int64) (Count, error) {
	text, err := loadIfNewer.Run(ctx, r.client, []string{page}, fence-1).Text()
	switch {
	case errors.Is(err, redis.Nil):
		return Count{}, locks.ErrFenced
	case err != nil:
		return Count{}, err
	}
	return parseCount(text)
}

// accepted converts the reply of a fencing script to an error.
func accepted(written int64, err error) error {
	if err == nil && written == 0 {
		return locks.ErrFenced
	}
	return err
}
