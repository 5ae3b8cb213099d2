package locks

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// silent answers commands itself, with a one where a number is asked for.
type silent struct{}

func (silent) DialHook(next redis.DialHook) redis.DialHook { return next }

func (silent) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		if c, ok := cmd.(*redis.Cmd); ok {
			c.SetVal(int64(1))
		}
		return nil
	}
}

func (silent) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// BenchmarkCommand is what making a command costs a worker, without sending it: as the lease does it, and by the library's
// own functions for it.
func BenchmarkCommand(b *testing.B) {
	var c redis.UniversalClient = redis.NewClient(&redis.Options{})
	defer func() { _ = c.Close() }()
	c.AddHook(silent{})
	ctx, key, token := b.Context(), "page:{1}", rand.Text()
	for _, command := range []struct {
		name string
		send func() error
	}{
		{"set/lease", func() error { return setNX(ctx, c, key, token, time.Second) }},
		{"set/library", func() error {
			return c.SetArgs(ctx, key, token, redis.SetArgs{Mode: "NX", TTL: time.Second}).Err()
		}},
		{"delete/lease", func() error { return deleteOwned(ctx, c, key, token) }},
		{"delete/library", func() error { return owned(compareAndDelete.Run(ctx, c, []string{key}, token)) }},
	} {
		b.Run(command.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := command.send(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
