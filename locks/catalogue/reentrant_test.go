package catalogue

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/locks"
	"hammerlock/topologies"
)

func TestEveryLockThatClaimsReentryHasIt(t *testing.T) {
	t.Parallel()
	home := homes(t)
	for _, s := range every {
		if !s.Claims.Reentrant {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			a, b := home(s).pair(t, s)
			outer := grant(t, a, s.Name, long)
			inner := grant(t, a, s.Name, long)
			if outer.Count != 1 || inner.Count != 2 || outer.Token != inner.Token {
				t.Errorf("outer %+v, inner %+v", outer, inner)
			}
			must(t, a.Release(t.Context(), inner))
			if _, err := b.Acquire(t.Context(), s.Name, long); !refused(err) {
				t.Errorf("after the inner release: %v, want a refusal", err)
			}
			must(t, a.Release(t.Context(), outer))
			next := grant(t, b, s.Name, long)
			must(t, b.Release(t.Context(), next))
			again := grant(t, a, s.Name, long)
			if again.Token == outer.Token || again.Count != 1 {
				t.Errorf("a new hold %+v after %+v", again, outer)
			}
			must(t, a.Release(t.Context(), again))
		})
	}
}

// noAnswer is a client that loses the replies of some commands, which are executed.
type noAnswer struct{ next int }

func (*noAnswer) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d *noAnswer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if d.next > 0 && (cmd.Name() == "evalsha" || cmd.Name() == "eval") && !redis.HasErrorPrefix(err, "NOSCRIPT") {
			d.next--
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return err
	}
}

func (*noAnswer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestReentrantBearsLostReplies loses the reply to each kind of command and checks the keys on the server.
func TestReentrantBearsLostReplies(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	for _, s := range []locks.Spec{reentrant, redisson} {
		t.Run(s.Name, func(t *testing.T) {
			client := home.top.Sites[0].Client(topologies.ClientOptions{ReadTimeout: live.Deadline})
			defer func() { must(t, client.Close()) }()
			d := &noAnswer{}
			client.AddHook(d)
			e := home.env()
			e.Sites = []redis.UniversalClient{client}
			a := open(t, s, e)
			key := s.Name
			holds := func(want string) {
				t.Helper()
				got, err := home.sites[0].HVals(t.Context(), key).Result()
				must(t, err)
				if strings.Join(got, "") != want {
					t.Errorf("the server counts %q holds, want %q", got, want)
				}
			}
			lost := func(err error) {
				t.Helper()
				if outcome, _ := locks.Classify(err); outcome != history.Unknown {
					t.Errorf("%v is %s, want unknown", err, outcome)
				}
			}

			d.next = 1
			held, err := a.Acquire(t.Context(), key, long)
			lost(err)
			holds("1")
			must(t, a.Release(t.Context(), held)) // releases a hold whose grant got no reply
			holds("")

			outer := grant(t, a, key, long)
			d.next = 1
			_, err = a.Acquire(t.Context(), key, long)
			lost(err)
			holds("2")
			inner := grant(t, a, key, long) // the same again
			holds("2")
			for range 2 {
				d.next = 1
				lost(a.Release(t.Context(), inner)) // undoes the inner hold, and may be repeated
				holds("1")
			}
			d.next = 1
			lost(a.Release(t.Context(), outer))
			holds("")
			if err := a.Release(t.Context(), outer); err != nil {
				t.Errorf("a repeated release says %v, but the first one did it", err)
			}
		})
	}
}

// TestRedissonKeepsRedissonsKeys acts as a Redisson client with plain commands.
func TestRedissonKeepsRedissonsKeys(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	c := home.sites[0]
	a := open(t, redisson, home.env())
	sub := c.Subscribe(t.Context(), "redisson_lock__channel:{k}")
	defer func() { must(t, sub.Close()) }()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}

	held := grant(t, a, "k", 0)
	fields, err := c.HGetAll(t.Context(), "k").Result()
	must(t, err)
	if !maps.Equal(fields, map[string]string{held.Token: "1"}) {
		t.Errorf("the hash is %v, want %s: 1", fields, held.Token)
	}
	if id, thread, ok := strings.Cut(held.Token, ":"); !ok || len(id) != 36 || thread != "1" {
		t.Errorf("the owner is %q, want a UUID and a thread's number", held.Token)
	}
	if left := c.PTTL(t.Context(), "k").Val(); left <= 0 || left > redissonLease {
		t.Errorf("a lease of %v, want the watchdog's 30 s", left)
	}
	must(t, a.Release(t.Context(), held))
	m, err := sub.ReceiveMessage(t.Context())
	must(t, err)
	if m.Payload != "0" {
		t.Errorf("the message of a release is %q, want 0", m.Payload)
	}
	keys := c.Keys(t.Context(), "*").Val()
	if len(keys) != 1 || !strings.HasPrefix(keys[0], "redisson_unlock_latch:{k}:") ||
		c.PTTL(t.Context(), keys[0]).Val() > latchLife {
		t.Errorf("after the release there is %v, want the latch", keys)
	}

	must(t, c.HSet(t.Context(), "k", "d1a6b1bc-54a2-4a2e-8d0f-6c0c7bb1f5b3:57", 2).Err())
	must(t, c.PExpire(t.Context(), "k", long).Err())
	if _, err := a.Acquire(t.Context(), "k", long); !errors.Is(err, locks.ErrBusy) {
		t.Errorf("while a Redisson client holds it: %v, want ErrBusy", err)
	}
	if keys := c.Keys(t.Context(), "*").Val(); !slices.Equal(keys, []string{"k"}) {
		t.Errorf("the next try leaves %v, want the latch gone", keys)
	}
}
