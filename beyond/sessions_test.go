package beyond_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hammerlock/beyond"
	"hammerlock/internal/live"
	"hammerlock/locks"
	"hammerlock/topologies"
	"hammerlock/topologies/links"
)

const ttl = time.Second

// waits is a worker's patience. No test expects to reach it.
const waits = live.Deadline / 2

// keepsSessions runs a test on each single-server topology with sessions, with its locks.
func keepsSessions(t *testing.T, test func(t *testing.T, top *topologies.Topology, all []locks.Spec)) {
	for _, name := range []string{"etcd", "zookeeper"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := bringUp(t, name, topologies.Options{})
			all := slices.DeleteFunc(slices.Clone(beyond.Catalogue.Locks), func(s locks.Spec) bool {
				return s.Engine != top.Spec.Can().Engine
			})
			test(t, top, all)
		})
	}
}

func bringUp(t *testing.T, name string, o topologies.Options) *topologies.Topology {
	t.Helper()
	i := slices.IndexFunc(beyond.Catalogue.Topologies, func(s topologies.Spec) bool { return s.Name == name })
	s := beyond.Catalogue.Topologies[i]
	if err := s.Installed(t.Context()); err != nil {
		t.Skip(err)
	}
	top, err := s.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := top.Close(); err != nil {
			t.Error(err)
		}
	})
	return top
}

// client is a process with one worker, and its line to the servers.
func client(t *testing.T, top *topologies.Topology, s locks.Spec, number uint64) (locks.Lock, *topologies.Line) {
	t.Helper()
	line := &topologies.Line{}
	e := locks.Env{
		Process: &locks.Process{}, Rand: rand.New(rand.NewPCG(1, number)),
		Places: []*topologies.Site{top.Sites[0].Access().Site().Over(line)},
	}
	l, err := s.Open(e)
	if err != nil {
		t.Fatal(err)
	}
	if _, waits := l.(locks.Patient); waits != s.Waits {
		t.Errorf("%s: waits by itself: %v, its spec says %v", s.Name, waits, s.Waits)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l, line
}

func take(ctx context.Context, l locks.Lock, key string) (lease locks.Lease, err error) {
	ctx, cancel := context.WithTimeout(ctx, waits)
	defer cancel()
	if p, ok := l.(locks.Patient); ok {
		return p.AcquireWithin(ctx, key, ttl, waits)
	}
	for {
		if lease, err = l.Acquire(ctx, key, ttl); !errors.Is(err, locks.ErrBusy) {
			return lease, err
		}
		if _, err := l.(locks.Waiter).Wait(ctx, key); err != nil {
			return lease, err
		}
	}
}

func told(l locks.Lease) bool {
	select {
	case <-l.Lost:
		return true
	default:
		return false
	}
}

// TestSessionsAreRenewed: a lock is held for two leases, and then handed on.
func TestSessionsAreRenewed(t *testing.T) {
	keepsSessions(t, func(t *testing.T, top *topologies.Topology, all []locks.Spec) {
		for _, s := range all {
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				live.Again(t, func(n int) string { return isRenewed(t, top, s, fmt.Sprint(s.Name, n)) })
			})
		}
	})
}

// isRenewed is undecided if the hold was lost, because the machine paused for longer than the session.
func isRenewed(t *testing.T, top *topologies.Topology, s locks.Spec, key string) (undecided string) {
	a, _ := client(t, top, s, 1)
	b, _ := client(t, top, s, 2)
	held, err := take(t.Context(), a, key)
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(2 * ttl)
	_, err = b.Acquire(t.Context(), key, ttl)
	if told(held) || s.Broken != "" && err == nil {
		return "the holder has lost the lock"
	}
	if !errors.Is(err, locks.ErrBusy) {
		t.Errorf("while it is held: got %v, want ErrBusy", err)
	}
	if err := a.Release(t.Context(), held); err != nil {
		t.Error(err)
	}
	next, err := take(t.Context(), b, key)
	if err != nil || s.Claims.Fences && next.Fence <= held.Fence {
		t.Errorf("got fence %d after %d, %v", next.Fence, held.Fence, err)
	}
	return ""
}

// outlives reports whether a disconnected holder still believes in its hold when the next one has the lock.
func outlives(t *testing.T, top *topologies.Topology, s locks.Spec, key string) bool {
	a, line := client(t, top, s, 1)
	b, _ := client(t, top, s, 2)
	held, err := take(t.Context(), a, key)
	if err != nil {
		t.Fatal(err)
	}
	line.Cut(true)
	defer line.Cut(false)
	next, err := take(t.Context(), b, key)
	if err != nil {
		t.Fatal(err)
	}
	believes := !told(held)
	if s.Claims.Fences && next.Fence <= held.Fence {
		t.Errorf("the fence would let the first one store: %d after %d", next.Fence, held.Fence)
	}
	return believes
}

// TestWhoIsCutOffIsToldInTime: when a session expires, the lock passes on although its holder lives. A correct lock
// tells the holder before that. With a wrong lock, two workers hold the lock together, and only a fence can refuse
// the first one's store. Some libraries check once a second, so the outcome varies, and the test retries.
func TestWhoIsCutOffIsToldInTime(t *testing.T) {
	late := []string{"etcd-done", "etcd-deaf", "zookeeper-deaf", "zookeeper-reuse"}
	keepsSessions(t, func(t *testing.T, top *topologies.Topology, all []locks.Spec) {
		for _, s := range all {
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				if testing.Short() && s.Broken != "" {
					t.Skip("without -short")
				}
				want := slices.Contains(late, s.Name)
				live.Again(t, func(int) (undecided string) {
					if got := outlives(t, top, s, s.Name); got != want {
						return fmt.Sprintf("believes beside the next one: got %v, want %v", got, want)
					}
					return ""
				})
			})
		}
	})
}

// TestAnExpiredSession ends a holder's session by force: the lock passes on at once, and only the fence protects.
func TestAnExpiredSession(t *testing.T) {
	keepsSessions(t, func(t *testing.T, top *topologies.Topology, all []locks.Spec) {
		s := all[0]
		a, _ := client(t, top, s, 1)
		b, _ := client(t, top, s, 2)
		held, err := take(t.Context(), a, "k")
		if err != nil {
			t.Fatal(err)
		}
		if err := top.Expire(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		next, err := take(t.Context(), b, "k")
		if err != nil || next.Fence <= held.Fence {
			t.Fatalf("got fence %d after %d, %v", next.Fence, held.Fence, err)
		}
		<-held.Lost
		if err := a.Release(t.Context(), held); err == nil {
			t.Error("released what is another's")
		}
		if err := b.Release(t.Context(), next); err != nil {
			t.Error(err)
		}
	})
}

// TestALeaderThatIsCutOff cuts the leader off from its peers by links: another node must lead.
func TestALeaderThatIsCutOff(t *testing.T) {
	for _, name := range []string{"etcd3", "zookeeper3"} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "etcd3" {
				t.Skip("without -short")
			}
			top := bringUp(t, name, topologies.Options{Links: true})
			ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
			defer cancel()
			old, err := top.Sites[0].Primary(ctx, "k")
			if err != nil {
				t.Fatal(err)
			}
			cut := links.Rule{Effect: links.Drop, From: []links.Party{links.Party(old.Name)}}
			for _, n := range top.Nodes {
				if n != old {
					cut.To = append(cut.To, links.Party(n.Name))
				}
			}
			heal, err := top.Network().Apply(cut)
			if err != nil {
				t.Fatal(err)
			}
			for leads := false; !leads; {
				for _, n := range top.Nodes {
					info, err := n.Info(ctx)
					leads = leads || n != old && err == nil && info["role"] == "master"
				}
				select {
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
					t.Fatal("no other node leads")
				}
			}
			heal()
			if err := top.AwaitHealthy(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}
