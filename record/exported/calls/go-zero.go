//go:build ignore

package lock_test

import "github.com/zeromicro/go-zero/core/stores/redis"

type lock struct {
	client *redis.Redis
	lock   *redis.RedisLock
}

func connect(addr string, _ time.Duration) *lock {
	return &lock{client: redis.MustNewRedis(redis.RedisConf{Host: addr, Type: "node"})}
}

func (l *lock) acquire(ctx context.Context, key string, lease time.Duration) error {
	l.lock = redis.NewRedisLock(l.client, key)
	l.lock.SetExpire(int(lease / time.Second))
	return said(l.lock.AcquireCtx(ctx))
}

func (l *lock) extend(ctx context.Context, _ time.Duration) error {
	return said(l.lock.AcquireCtx(ctx))
}
func (l *lock) release(ctx context.Context) error { return said(l.lock.ReleaseCtx(ctx)) }

func said(ok bool, err error) error {
	if err == nil && !ok {
		err = errors.New("no")
	}
	return err
}
