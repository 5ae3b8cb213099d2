package catalogue

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/locks"
)

var ifeq = locks.Spec{
	Name: "ifeq",
	Doc: "SET NX PX; extended by SET IFEQ PX and released by DELEX IFEQ (Redis) or DELIFEQ " +
		"(Valkey), without scripts",
	Source:  "redis.io, SET and DELEX (8.4); valkey.io, SET (8.1) and DELIFEQ (9.0)",
	Sites:   locks.OneSite,
	Assumes: keepsKeys + doneInTime,
	Needs:   ifeqNeeds,
	Claims:  lease.Claims,
	Shared:  true,
	Open: func(e locks.Env) (locks.Lock, error) {
		l := &ifeqLock{leaseLock: leaseLock{e.Sites[0]}, remove: delex}
		if e.Server.Name == valkey {
			l.remove = delifeq
		}
		return l, locks.Spec{Name: "ifeq", Needs: ifeqNeeds}.Runs(e.Server)
	},
}

const valkey = "Valkey"

var ifeqNeeds = []locks.Release{{Name: "Redis", Since: "8.4"}, {Name: valkey, Since: "9.0"}}

type ifeqLock struct {
	leaseLock
	remove func(ctx context.Context, c redis.UniversalClient, key, token string) *redis.IntCmd
}

func (l *ifeqLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	err := l.client.SetIFEQ(ctx, lease.Key, lease.Token, lease.Token, ttl).Err()
	if errors.Is(err, redis.Nil) {
		err = locks.ErrLost
	}
	return from(lease, call, ttl, err)
}

func (l *ifeqLock) Release(ctx context.Context, lease locks.Lease) error {
	return owned(l.remove(ctx, l.client, lease.Key, lease.Token).Result())
}

func delex(ctx context.Context, c redis.UniversalClient, key, token string) *redis.IntCmd {
	return c.DelExArgs(ctx, key, redis.DelExArgs{Mode: "IFEQ", MatchValue: token})
}

func delifeq(ctx context.Context, c redis.UniversalClient, key, token string) *redis.IntCmd {
	cmd := redis.NewIntCmd(ctx, "DELIFEQ", key, token)
	_ = c.Process(ctx, cmd) // Process also stores its error in cmd
	return cmd
}
