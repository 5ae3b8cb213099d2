//go:build ignore

package lock_test

import (
	"errors"
	"os"

	"github.com/redis/go-redis/v9"
)

// lock has a wrong release: it deletes the key, even if another client has set it. If RIGHT is set in the environment,
// the release deletes only its own key.
type lock struct {
	client     *redis.Client
	key, token string
}

func connect(addr string) *lock {
	return &lock{client: redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: -1})}
}

func (l *lock) acquire(ctx context.Context, key string, lease time.Duration) error {
	l.key, l.token = key, time.Now().String()
	if ok, err := l.client.SetNX(ctx, key, l.token, lease).Result(); err != nil || !ok {
		return errors.Join(errors.New("no"), err)
	}
	return nil
}

func (l *lock) ours(ctx context.Context) error {
	if l.client.Get(ctx, l.key).Val() != l.token {
		return errors.New("no")
	}
	return nil
}

func (l *lock) extend(ctx context.Context, lease time.Duration) error {
	if err := l.ours(ctx); err != nil {
		return err
	}
	return l.client.PExpire(ctx, l.key, lease).Err()
}

func (l *lock) release(ctx context.Context) error {
	if os.Getenv("RIGHT") != "" && l.ours(ctx) != nil {
		return errors.New("no")
	}
	return l.client.Del(ctx, l.key).Err()
}
