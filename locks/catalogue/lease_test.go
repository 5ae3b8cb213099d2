package catalogue

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// silent answers every command itself, with 1 where a number is expected.
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

// heard keeps the arguments of the last command, and answers it.
type heard struct {
	silent
	args *[]any
}

func (h heard) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	answer := h.silent.ProcessHook(next)
	return func(ctx context.Context, cmd redis.Cmder) error {
		*h.args = cmd.Args()
		return answer(ctx, cmd)
	}
}

// TestSetNXRoundsNoLifetimeToNothing: a server refuses a TTL of 0, and a key without a TTL never expires.
func TestSetNXRoundsNoLifetimeToNothing(t *testing.T) {
	t.Parallel()
	c := redis.NewClient(&redis.Options{})
	defer func() { _ = c.Close() }()
	var args []any
	c.AddHook(heard{args: &args})
	for ttl, want := range map[time.Duration]string{
		0: "[set page token nx]", time.Microsecond: "[set page token nx px 1]",
		5 * time.Second: "[set page token nx px 5000]",
	} {
		if err := setNX(t.Context(), c, "page", "token", ttl); err != nil || fmt.Sprint(args) != want {
			t.Errorf("%v: sent %v, %v, want %s", ttl, args, err, want)
		}
	}
}

// BenchmarkCommand measures how long it takes to build a command, without sending it. It compares the lease's code
// with the library's functions.
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
		{"delete/library", func() error { return owned(compareAndDelete.Run(ctx, c, []string{key}, token).Int64()) }},
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
