package locks

import (
	"context"
	"crypto/rand"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var zsetRank = Spec{
	Name:   "zset-rank",
	Doc:    "a sorted set of tokens by the time at which they came: the first one has the lock, others take theirs out again",
	Source: "Redis in Action 6.3.1, the basic counting semaphore, for one",
	Sites:  OneSite,
	Broken: "a time that was read earlier sorts before one that was written earlier: who is slow in between gets a lock that is held",
	Expect: []Expectation{{Cause: history.DoubleGrant}},
	Claims: lease.Claims,
	Open:   func(e Env) (Lock, error) { return &zsetLock{leaseLock{e.Sites[0]}, e}, nil },
}

type zsetLock struct {
	leaseLock
	env Env
}

func (l *zsetLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease := Lease{Key: key, Token: rand.Text()}
	now := time.Now()
	if err := l.env.between(ctx, key); err != nil {
		return lease, err
	}
	var rank *redis.IntCmd
	_, err := l.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.ZRemRangeByScore(ctx, key, "-inf", strconv.FormatInt(now.Add(-ttl).UnixMicro(), 10))
		p.ZAdd(ctx, key, redis.Z{Score: float64(now.UnixMicro()), Member: lease.Token})
		rank = p.ZRank(ctx, key, lease.Token)
		return nil
	})
	if err == nil && rank.Val() > 0 {
		if err := l.client.ZRem(ctx, key, lease.Token).Err(); err != nil {
			return lease, AfterGrant(err) // the token may still be in the set
		}
		return lease, ErrBusy
	}
	return lease.from(now, ttl, err)
}

func (l *zsetLock) Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	now := time.Now()
	z := redis.Z{Score: float64(now.UnixMicro()), Member: lease.Token}
	err := owned(l.client.ZAddArgs(ctx, lease.Key, redis.ZAddArgs{XX: true, Ch: true, Members: []redis.Z{z}}).Result())
	return lease.from(now, ttl, err)
}

func (l *zsetLock) Release(ctx context.Context, lease Lease) error {
	return owned(l.client.ZRem(ctx, lease.Key, lease.Token).Result())
}
