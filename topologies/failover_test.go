package topologies

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// replicated are the topologies with somebody to fail over to.
var replicated = []string{"replica", "sentinel", "cluster"}

func within(t testing.TB, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func primaryOf(t testing.TB, top *Topology, key string) *Node {
	t.Helper()
	n, err := top.Sites[0].Primary(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func failover(t testing.TB, top *Topology, primary *Node) *Node {
	t.Helper()
	next, err := top.Sites[0].Failover(within(t, 20*time.Second), primary)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// moved waits until another node is the primary. By hand, somebody must lend one.
func moved(t testing.TB, top *Topology, key string, from *Node) *Node {
	t.Helper()
	if top.Spec.Name == "replica" {
		return failover(t, top, from)
	}
	var next *Node
	if err := poll(within(t, 20*time.Second), pollEvery, func() (err error) {
		next, err = top.Sites[0].Primary(t.Context(), key)
		if err == nil && next == from {
			err = errors.New("still " + from.Name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return next
}

// healthyAgain is the end of every fault: the deployment is whole again and clients can write.
func healthyAgain(t testing.TB, top *Topology, c redis.UniversalClient, key string) {
	t.Helper()
	ctx := within(t, 30*time.Second)
	if err := errors.Join(top.Sites[0].Repair(ctx), top.AwaitHealthy(ctx)); err != nil {
		t.Fatalf("not healthy again: %v", err)
	}
	if err := poll(ctx, pollEvery, func() error { return c.Set(ctx, key, "again", 0).Err() }); err != nil {
		t.Fatalf("clients cannot write: %v", err)
	}
}

// awaitFollower waits until a node is a replica of the primary, whoever that is by then: on a busy machine sentinels take even the
// next primary for dead at times, and replace it.
func awaitFollower(t testing.TB, top *Topology, key string, n *Node) {
	t.Helper()
	if err := poll(within(t, 20*time.Second), pollEvery, func() error {
		primary, err := top.Sites[0].Primary(t.Context(), key)
		if err != nil {
			return err
		}
		replicas, err := top.Sites[0].Replicas(t.Context(), primary)
		if err == nil && !containsNode(replicas, n) {
			err = fmt.Errorf("%s does not follow %s", n.Name, primary.Name)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

func each3(t *testing.T, f func(t *testing.T, top *Topology)) {
	for _, name := range replicated {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, up(t, name, Options{Links: true}))
		})
	}
}

func TestPrimaryAndReplicas(t *testing.T) {
	t.Parallel()
	want := map[string]int{"single": 0, "replica": 3, "sentinel": 3, "cluster": 1, "redlock": 0}
	for name, replicas := range want {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := up(t, name, Options{})
			for _, key := range []string{"a", "b", "{a}c"} {
				p := primaryOf(t, top, key)
				if err := p.Do(t.Context(), "SET", key, "v").Err(); err != nil {
					t.Errorf("%s is not the primary of %s: %v", p.Name, key, err)
				}
				got, err := top.Sites[0].Replicas(t.Context(), p)
				if err != nil || len(got) != replicas {
					t.Errorf("%s has %d replicas, want %d, %v", p.Name, len(got), replicas, err)
				}
			}
			if replicas == 0 {
				if _, err := top.Sites[0].Failover(within(t, time.Second), top.Nodes[0]); !errors.Is(err, errNoReplica) {
					t.Errorf("got %v, want errNoReplica", err)
				}
			}
		})
	}
}

func TestKilledPrimaryIsReplacedAndComesBack(t *testing.T) {
	t.Parallel()
	each3(t, func(t *testing.T, top *Topology) {
		c, old := writtenKey(t, top)
		if err := old.Kill(); err != nil {
			t.Fatal(err)
		}
		next := moved(t, top, key, old)
		if err := poll(within(t, 20*time.Second), pollEvery, func() error { return c.Incr(t.Context(), key+"{k}").Err() }); err != nil {
			t.Errorf("clients do not find %s: %v", next.Name, err)
		}
		if err := old.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		healthyAgain(t, top, c, key)
		awaitFollower(t, top, key, old)
	})
}

const key = "k"

// writtenKey writes a key that replicas have, and returns who wrote it and its primary.
func writtenKey(t *testing.T, top *Topology) (redis.UniversalClient, *Node) {
	t.Helper()
	c := client(t, top, ClientOptions{Source: 1})
	if err := poll(within(t, 10*time.Second), pollEvery, func() error { return c.Set(t.Context(), key, "v", 0).Err() }); err != nil {
		t.Fatal(err)
	}
	primary := primaryOf(t, top, key)
	if err := reached(t.Context(), primary, 1); err != nil {
		t.Fatal(err)
	}
	return c, primary
}

func containsNode(list []*Node, n *Node) bool {
	for _, other := range list {
		if other == n {
			return true
		}
	}
	return false
}

func TestFailoverOfALivingPrimaryKeepsTheData(t *testing.T) {
	t.Parallel()
	each3(t, func(t *testing.T, top *Topology) {
		c, old := writtenKey(t, top)
		next := failover(t, top, old)
		if next == old || primaryOf(t, top, key) != next {
			t.Errorf("moved from %s to %s, primary is %s", old.Name, next.Name, primaryOf(t, top, key).Name)
		}
		if got, err := next.Do(t.Context(), "GET", key).Text(); err != nil || got != "v" {
			t.Errorf("the new primary has %q, %v", got, err)
		}
		healthyAgain(t, top, c, key)
	})
}

// TestLostWrite is the classic: a write is acknowledged while replication is cut, its node dies, and the replica
// that takes over has never heard of it.
func TestLostWrite(t *testing.T) {
	t.Parallel()
	each3(t, func(t *testing.T, top *Topology) {
		c := client(t, top, ClientOptions{Source: 1})
		for _, cut := range []bool{false, true, true, true} {
			key := "lock"
			if err := poll(within(t, 10*time.Second), pollEvery, func() error { return c.Del(t.Context(), key).Err() }); err != nil {
				t.Fatal(err)
			}
			old := primaryOf(t, top, key)
			if err := reached(t.Context(), old, 1); err != nil {
				t.Fatal(err)
			}
			heal := func() {}
			if cut {
				heal = apply(t, top, Rule{From: []Party{Party(old.Name)}, To: []Party{AllNodes}, OneWay: true, Effect: Drop})
			}
			if granted, err := c.SetNX(t.Context(), key, "first", time.Minute).Result(); err != nil || !granted {
				t.Fatalf("the first grant: %v, %v", granted, err)
			}
			if !cut { // on a good day the stream is there before the answer, mostly
				if err := reached(t.Context(), old, 1); err != nil {
					t.Fatal(err)
				}
			}
			if err := old.Kill(); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			next := failover(t, top, old)
			took := time.Since(start)
			var granted bool
			if err := poll(within(t, 10*time.Second), pollEvery, func() (err error) {
				granted, err = c.SetNX(t.Context(), key, "second", time.Minute).Result()
				return err
			}); err != nil {
				t.Fatal(err)
			}
			t.Logf("cut %v: %s took over in %v, granted twice: %v", cut, next.Name, took, granted)
			if granted != cut {
				t.Errorf("replication cut: %v, granted twice: %v", cut, granted)
			}
			heal()
			if err := old.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			healthyAgain(t, top, c, key)
		}
	})
}

// TestCutOffPrimary cuts the primary off, or stops it: another takes its place while it still serves.
func TestCutOffPrimary(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"partition", "pause"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			each3(t, func(t *testing.T, top *Topology) {
				const key = "k"
				c := client(t, top, ClientOptions{Source: 1})
				old := primaryOf(t, top, key)
				heal, err := old.Resume, error(nil)
				if how == "pause" {
					err = old.Pause()
				} else {
					undo := apply(t, top, Rule{From: []Party{Party(old.Name)}, To: []Party{AllNodes}, Effect: Drop})
					heal = func() error { undo(); return nil }
				}
				if err != nil {
					t.Fatal(err)
				}
				moved(t, top, key, old)
				if how == "partition" {
					if err := leads(t.Context(), old); err != nil {
						t.Errorf("cut off, and yet it knows: %v", err)
					}
				}
				if err := heal(); err != nil {
					t.Fatal(err)
				}
				healthyAgain(t, top, c, key)
				awaitFollower(t, top, key, old)
			})
		})
	}
}

// TestReplicaThatSleptThroughAFailover comes back following a primary that is none any more.
func TestReplicaThatSleptThroughAFailover(t *testing.T) {
	t.Parallel()
	each3(t, func(t *testing.T, top *Topology) {
		const key = "k"
		c := client(t, top, ClientOptions{Source: 1})
		old := primaryOf(t, top, key)
		replicas, err := top.Sites[0].Replicas(t.Context(), old)
		if err != nil {
			t.Fatal(err)
		}
		sleeper := replicas[0]
		if top.Spec.Name == "cluster" { // it is the only one there: another's
			sleeper = top.Nodes[4]
			if containsNode(replicas, sleeper) {
				sleeper = top.Nodes[5]
			}
		}
		if err := sleeper.Kill(); err != nil {
			t.Fatal(err)
		}
		failover(t, top, old)
		if err := sleeper.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		healthyAgain(t, top, c, key)
	})
}
