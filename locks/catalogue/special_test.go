package catalogue

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/locks"
	"hammerlock/topologies"
)

// TestLocksLiveOnEveryTopologyWithOneSite is about scripts with several keys, and about connections by name.
func TestLocksLiveOnEveryTopologyWithOneSite(t *testing.T) {
	t.Parallel()
	for _, topology := range []string{"replica", "sentinel", "cluster"} {
		t.Run(topology, func(t *testing.T) {
			t.Parallel()
			home := newBench(t, topology)
			for _, s := range every {
				if s.Sites != locks.OneSite || !s.Claims.Excludes || !home.runs(s) {
					continue
				}
				t.Run(s.Name, func(t *testing.T) {
					t.Parallel()
					excludes(t, home, s, s.Name)
					excludes(t, home, s, s.Name+":{page-0}")
				})
			}
		})
	}
}

func TestLocalKnowsOneProcess(t *testing.T) {
	t.Parallel()
	a, err := local.Open(locks.Env{Process: &locks.Process{}})
	must(t, err)
	b, err := local.Open(locks.Env{Process: &locks.Process{}})
	must(t, err)
	held, other := grant(t, a, "k", 0), grant(t, b, "k", 0)
	must(t, errors.Join(a.Release(t.Context(), held), b.Release(t.Context(), other)))
}

func TestWaitWantsAllReplicas(t *testing.T) {
	t.Parallel()
	played(t, newBench(t, "replica"), "k", func(home *stage, key string) {
		a, b := home.pair(t, wait)
		if n := a.(*waitLock).replicas; n != 3 {
			t.Fatalf("%d replicas, want 3", n)
		}
		held := grant(t, a, key, long)
		for _, n := range home.top.Nodes[1:] {
			got, err := n.Do(t.Context(), "GET", key).Text()
			if err != nil || got != held.Token {
				t.Errorf("%s has %q, %v when the grant is acknowledged", n.Name, got, err)
			}
		}
		must(t, a.Release(t.Context(), held))

		must(t, home.top.Nodes[3].Pause())
		_, err := a.Acquire(t.Context(), key, long)
		there := home.sites[0].Exists(t.Context(), key).Val()
		must(t, home.top.Nodes[3].Resume())
		if home.unanswered(err) {
			return
		}
		if outcome, reason := locks.Classify(err); outcome != history.Failed || reason != history.Quorum {
			t.Errorf("one replica hangs: %s %s, %v", outcome, reason, err)
		}
		if there != 0 {
			t.Error("the grant was not undone")
		}
		must(t, home.top.AwaitHealthy(t.Context()))
		held = grant(t, b, key, long)
		must(t, home.top.Nodes[3].Pause())
		extended, err := b.Extend(t.Context(), held, 2*long)
		if outcome, _ := locks.Classify(err); outcome != history.Unknown || !extended.Until.Equal(held.Until) {
			t.Errorf("extended without a replica: %v, Until moved by %v", err, extended.Until.Sub(held.Until))
		}
		must(t, home.top.Nodes[3].Resume())
	})
}

// TestWaitOneWantsOneReplica: the lock is granted with one replica, and refused without any.
func TestWaitOneWantsOneReplica(t *testing.T) {
	t.Parallel()
	played(t, newBench(t, "replica"), "k", func(home *stage, key string) {
		a, b := home.pair(t, waitOne)
		for _, n := range home.top.Nodes[2:] {
			must(t, n.Pause())
		}
		held := grant(t, a, key, long)
		if got, err := home.top.Nodes[1].Do(t.Context(), "GET", key).Text(); err != nil || got != held.Token {
			t.Errorf("%s has %q, %v when the grant is acknowledged", home.top.Nodes[1].Name, got, err)
		}
		must(t, a.Release(t.Context(), held))
		must(t, home.top.Nodes[1].Pause())
		_, err := b.Acquire(t.Context(), key, long)
		there := home.sites[0].Exists(t.Context(), key).Val()
		for _, n := range home.top.Nodes[1:] {
			must(t, n.Resume())
		}
		must(t, home.top.AwaitHealthy(t.Context()))
		if home.unanswered(err) {
			return
		}
		if outcome, reason := locks.Classify(err); outcome != history.Failed || reason != history.Quorum || there != 0 {
			t.Errorf("no replica answers: %s %s, %v, and %d keys are left", outcome, reason, err, there)
		}
	})
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		server topologies.Server
		runs   bool
	}{
		"unknown":      {topologies.Server{}, true},
		"embedded":     {topologies.Server{Path: "embedded", Name: "embedded"}, false},
		"redis 7.0":    {topologies.Server{Name: "Redis", Version: "7.0.15"}, false},
		"redis 8.2":    {topologies.Server{Name: "Redis", Version: "8.2.1"}, false},
		"redis 8.4":    {topologies.Server{Name: "Redis", Version: "8.4.0"}, true},
		"redis 8.10":   {topologies.Server{Name: "Redis", Version: "8.10.0"}, true},
		"redis 10":     {topologies.Server{Name: "Redis", Version: "10.0.0"}, true},
		"valkey 8.1":   {topologies.Server{Name: "Valkey", Version: "8.1.3"}, false},
		"valkey 9":     {topologies.Server{Name: "Valkey", Version: "9.0.0"}, true},
		"no version":   {topologies.Server{Name: "Redis", Version: "unstable"}, false},
		"too short":    {topologies.Server{Name: "Redis", Version: "8"}, false},
		"another name": {topologies.Server{Name: "Redict", Version: "9.9.9"}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := ifeq.Runs(c.server)
			if (err == nil) != c.runs {
				t.Fatalf("got %v, want it to run: %v", err, c.runs)
			}
			if err == nil {
				return
			}
			if !errors.Is(err, locks.ErrServer) || !strings.Contains(err.Error(), c.server.String()) ||
				!strings.Contains(err.Error(), "Redis 8.4") {
				t.Errorf("the error names not what is there and what is needed: %v", err)
			}
			if _, opened := ifeq.Open(locks.Env{Sites: make([]redis.UniversalClient, 1), Server: c.server}); !errors.Is(
				opened, locks.ErrServer) {
				t.Errorf("opened: %v", opened)
			}
			if err := lease.Runs(c.server); err != nil {
				t.Errorf("a lock without needs: %v", err)
			}
		})
	}
}

// newer lets an older server execute the commands of a newer one, as the documentation describes them.
type newer struct{ client redis.UniversalClient }

func (newer) DialHook(next redis.DialHook) redis.DialHook { return next }

func (n newer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args := cmd.Args()
		switch {
		case len(args) == 7 && args[5] == "ifeq": // set key value px|ex n ifeq match
			script := `if redis.call("GET", KEYS[1]) ~= ARGV[1] then return false end
return redis.call("SET", KEYS[1], ARGV[2], ARGV[3], ARGV[4])`
			cmd.SetErr(n.client.Eval(ctx, script, []string{args[1].(string)}, args[6], args[2], args[3], args[4]).Err())
			return cmd.Err()
		case cmd.Name() == "delex" && len(args) == 4 && args[2] == "IFEQ":
			return n.compareAndDelete(ctx, cmd, args[1], args[3])
		case cmd.Name() == "delifeq" && len(args) == 3:
			return n.compareAndDelete(ctx, cmd, args[1], args[2])
		}
		return next(ctx, cmd)
	}
}

func (n newer) compareAndDelete(ctx context.Context, cmd redis.Cmder, key, match any) error {
	deleted, err := compareAndDelete.Run(ctx, n.client, []string{key.(string)}, match).Int64()
	cmd.(*redis.IntCmd).SetVal(deleted)
	cmd.SetErr(err)
	return err
}

func (newer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestIfeq(t *testing.T) {
	t.Parallel()
	old := newBench(t, "single")
	for _, server := range []topologies.Server{{Name: "Redis", Version: "8.4.0"}, {Name: "Valkey", Version: "9.0.0"}} {
		t.Run(server.Name, func(t *testing.T) {
			client := old.top.Sites[0].Client(topologies.ClientOptions{ReadTimeout: live.Deadline})
			defer func() { must(t, client.Close()) }()
			client.AddHook(newer{old.sites[0]})
			home, s := &bench{old.top, []redis.UniversalClient{client}}, ifeq
			s.Open = func(e locks.Env) (locks.Lock, error) {
				e.Server = server
				return ifeq.Open(e)
			}
			excludes(t, home, s, server.Name)
			a, _ := home.pair(t, s)
			held := grant(t, a, "k", long)
			for _, ttl := range []time.Duration{2 * long, long + 1500*time.Millisecond} {
				extended, err := a.Extend(t.Context(), held, ttl)
				must(t, err)
				left := old.sites[0].PTTL(t.Context(), "k").Val()
				if left > ttl || left < ttl-live.Deadline || !extended.Until.After(time.Now()) {
					t.Errorf("extended by %v: %v left, Until %v", ttl, left, extended.Until)
				}
			}
			must(t, old.sites[0].Set(t.Context(), "k", "somebody", 0).Err())
			if _, err := a.Extend(t.Context(), held, long); !errors.Is(err, locks.ErrLost) {
				t.Errorf("extended what is somebody else's: %v", err)
			}
			if err := a.Release(t.Context(), held); !errors.Is(err, locks.ErrLost) {
				t.Errorf("released what is somebody else's: %v", err)
			}
			must(t, old.sites[0].Del(t.Context(), "k").Err())
		})
	}
}

func TestFencedDrawsInTheGrant(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	a, b := home.pair(t, fenced)
	for want := int64(1); want < 4; want++ {
		held := grant(t, a, "k", long)
		if _, err := b.Acquire(t.Context(), "k", long); !errors.Is(err, locks.ErrBusy) {
			t.Error(err)
		}
		if held.Fence != want {
			t.Errorf("token %d, want %d: tries that are refused draw none", held.Fence, want)
		}
		must(t, a.Release(t.Context(), held))
		a, b = b, a
	}
}
