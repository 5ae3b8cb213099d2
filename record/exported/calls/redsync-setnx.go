//go:build ignore

package lock_test

import (
	"errors"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	client "github.com/redis/go-redis/v9"
)

type lock struct {
	rs *redsync.Redsync
	m  *redsync.Mutex
}

func connect(addr string) *lock {
	c := client.NewClient(&client.Options{Addr: addr, MaxRetries: -1, ReadTimeout: -1})
	return &lock{rs: redsync.New(goredis.NewPool(c))}
}

func (l *lock) acquire(ctx context.Context, key string, lease time.Duration) error {
	l.m = l.rs.NewMutex(key, redsync.WithExpiry(lease), redsync.WithTries(1), redsync.WithSetNXOnExtend())
	return l.m.LockContext(ctx)
}

func (l *lock) extend(ctx context.Context, _ time.Duration) error {
	return said(l.m.ExtendContext(ctx))
}
func (l *lock) release(ctx context.Context) error { return said(l.m.UnlockContext(ctx)) }

func said(ok bool, err error) error {
	if err == nil && !ok {
		err = errors.New("no")
	}
	return err
}
