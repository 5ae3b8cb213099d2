package topologies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/internal/live"
	"hammerlock/topologies/links"
)

// replicated lists the topologies with replicas.
var replicated = []string{"replica", "sentinel", "cluster"}

func primaryOf(t testing.TB, top *Topology, key string) *Node {
	t.Helper()
	var n *Node
	succeeds(t, "a primary", func() (err error) { n, err = top.Sites[0].Primary(t.Context(), key); return err })
	return n
}

// failover makes a replica the primary, unless the servers have done this by themselves.
func failover(t testing.TB, top *Topology, key string, primary *Node) (next *Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), live.Deadline)
	defer cancel()
	succeeds(t, "a failover", func() (err error) {
		if next, err = top.Sites[0].Failover(ctx, primary); err == nil {
			return nil
		}
		if other, failed := top.Sites[0].Primary(t.Context(), key); failed == nil && other != primary {
			next, err = other, nil
		}
		return err
	})
	return next
}

// moved waits until another node is the primary. In the topology replica, it promotes one itself.
func moved(t testing.TB, top *Topology, key string, from *Node) (next *Node) {
	t.Helper()
	if top.Spec.Name == "replica" {
		return failover(t, top, key, from)
	}
	succeeds(t, "another primary", func() (err error) {
		next, err = top.Sites[0].Primary(t.Context(), key)
		if err == nil && next == from {
			err = errors.New("still " + from.Name)
		}
		return err
	})
	return next
}

// healthyAgain checks, after a fault, that the deployment is healthy and that clients can write.
func healthyAgain(t testing.TB, top *Topology, c redis.UniversalClient, key string) {
	t.Helper()
	succeeds(t, "healthy servers", func() error {
		return cmp.Or(top.Sites[0].Repair(t.Context()), top.healthy(t.Context()))
	})
	succeeds(t, "a client's write", func() error { return c.Set(t.Context(), key, "again", 0).Err() })
}

// awaitFollower waits until a node is a replica of the current primary. It asks for the primary again and again,
// because on a busy machine the sentinels may replace even a new one.
func awaitFollower(t testing.TB, top *Topology, key string, n *Node) {
	t.Helper()
	succeeds(t, "that "+n.Name+" follows", func() error {
		primary, err := top.Sites[0].Primary(t.Context(), key)
		if err != nil || primary == n { // it was elected again
			return err
		}
		replicas, err := top.Sites[0].Replicas(t.Context(), primary)
		if err == nil && !slices.Contains(replicas, n) {
			err = fmt.Errorf("%s does not follow %s", n.Name, primary.Name)
		}
		return err
	})
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
			top := sharing(t, name)
			for _, key := range []string{"a", "b", "{a}c"} {
				succeeds(t, "the primary of "+key+" and its replicas", func() error { // a failover may have just begun
					p, err := top.Sites[0].Primary(t.Context(), key)
					if err != nil {
						return err
					}
					if err := p.Do(t.Context(), "SET", key, "v").Err(); err != nil {
						return fmt.Errorf("%s is not the primary of %s: %w", p.Name, key, err)
					}
					got, err := top.Sites[0].Replicas(t.Context(), p)
					if err == nil && len(got) != replicas {
						err = fmt.Errorf("%s has %d replicas, want %d", p.Name, len(got), replicas)
					}
					return err
				})
			}
			if replicas == 0 {
				if _, err := top.Sites[0].Failover(t.Context(), top.Nodes[0]); !errors.Is(err, errNoReplica) {
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
		succeeds(t, "that clients find "+next.Name, func() error { return c.Incr(t.Context(), key+"{k}").Err() })
		if err := old.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		healthyAgain(t, top, c, key)
		awaitFollower(t, top, key, old)
	})
}

const key = "k"

// writtenKey writes a key that all replicas have, and returns the client and the primary.
func writtenKey(t *testing.T, top *Topology) (redis.UniversalClient, *Node) {
	t.Helper()
	c := client(t, top, ClientOptions{Source: 1})
	succeeds(t, "a client's write", func() error { return c.Set(t.Context(), key, "v", 0).Err() })
	return c, everywhere(t, top, key)
}

// everywhere waits until all replicas have all writes, and returns the primary.
func everywhere(t *testing.T, top *Topology, key string) (primary *Node) {
	t.Helper()
	succeeds(t, "replicas that have it", func() (err error) {
		if primary, err = top.Sites[0].Primary(t.Context(), key); err != nil {
			return err
		}
		return reached(t.Context(), primary, top.Sites[0].Copies())
	})
	return primary
}

func TestFailoverOfALivingPrimaryKeepsTheData(t *testing.T) {
	t.Parallel()
	each3(t, func(t *testing.T, top *Topology) {
		c, old := writtenKey(t, top)
		live.Again(t, func(int) string {
			next := failover(t, top, key, old)
			if next == old {
				t.Fatalf("moved from %s to itself", old.Name)
			}
			if now := primaryOf(t, top, key); now != next {
				old = now
				return fmt.Sprintf("moved to %s, the primary is %s", next.Name, now.Name)
			}
			if got, err := next.Do(t.Context(), "GET", key).Text(); err != nil || got != "v" {
				t.Errorf("the new primary has %q, %v", got, err)
			}
			return ""
		})
		healthyAgain(t, top, c, key)
	})
}

// TestLostWrite is the classic lost write. A write is acknowledged while replication is cut, the primary dies, and
// the replica that takes over does not have the write. Without the cut, the replica has it.
func TestLostWrite(t *testing.T) {
	t.Parallel()
	each3(t, func(t *testing.T, top *Topology) {
		c := client(t, top, ClientOptions{Source: 1})
		for _, cut := range []bool{false, true} {
			live.Again(t, func(int) string { return lostWrite(t, top, c, cut) })
		}
	})
}

func lostWrite(t *testing.T, top *Topology, c redis.UniversalClient, cut bool) (undecided string) {
	const key = "lock"
	succeeds(t, "a client's write", func() error { return c.Del(t.Context(), key).Err() })
	old := everywhere(t, top, key)
	heal := func() {}
	if cut {
		heal = apply(t, top, links.Rule{From: []links.Party{links.Party(old.Name)}, To: []links.Party{links.AllNodes},
			OneWay: true, Effect: links.Drop})
	}
	succeeds(t, "the first grant", func() error { return c.Set(t.Context(), key, "first", time.Hour).Err() })
	if old.Do(t.Context(), "GET", key).Val() != "first" {
		undecided = "another node had taken the place of " + old.Name + " before the first grant"
	}
	if !cut && undecided == "" { // usually the replication stream arrives before the reply
		if everywhere(t, top, key) != old {
			undecided = "another node took the place of " + old.Name
		}
	}
	if err := old.Kill(); err != nil {
		t.Fatal(err)
	}
	next := failover(t, top, key, old)
	succeeds(t, "the second attempt", func() error { return c.SetNX(t.Context(), key, "second", time.Hour).Err() })
	var has string
	succeeds(t, "who has the lock", func() (err error) { has, err = c.Get(t.Context(), key).Result(); return err })
	if undecided == "" && (has == "second") != cut {
		t.Errorf("replication cut: %v, %s took over, and the lock is that of the %s", cut, next.Name, has)
	}
	heal()
	if err := old.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	healthyAgain(t, top, c, key)
	return undecided
}

// TestCutOffPrimary cuts the primary off, or stops it: another node takes its place while it still serves.
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
					undo := apply(t, top, links.Rule{From: []links.Party{links.Party(old.Name)},
						To: []links.Party{links.AllNodes}, Effect: links.Drop})
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

// TestReplicaThatSleptThroughAFailover: a replica returns and follows a former primary.
func TestReplicaThatSleptThroughAFailover(t *testing.T) {
	t.Parallel()
	each3(t, func(t *testing.T, top *Topology) {
		const key = "k"
		c := client(t, top, ClientOptions{Source: 1})
		old := primaryOf(t, top, key)
		var replicas []*Node
		succeeds(t, "a replica", func() (err error) {
			if replicas, err = top.Sites[0].Replicas(t.Context(), old); err == nil && len(replicas) == 0 {
				err = errNoReplica
			}
			return err
		})
		sleeper := replicas[0]
		if top.Spec.Name == "cluster" { // it is the only replica there
			sleeper = top.Nodes[4]
			if slices.Contains(replicas, sleeper) {
				sleeper = top.Nodes[5]
			}
		}
		if err := sleeper.Kill(); err != nil {
			t.Fatal(err)
		}
		failover(t, top, key, old)
		if err := sleeper.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		healthyAgain(t, top, c, key)
	})
}

// TestAFailoverThatTheSentinelGaveUpIsAskedForAgain drops the order to the replica that the sentinel has chosen. The
// sentinel accepts the request, and gives the failover up after its timeout.
func TestAFailoverThatTheSentinelGaveUpIsAskedForAgain(t *testing.T) {
	t.Parallel()
	top := up(t, "sentinel", Options{Links: true})
	_, old := writtenKey(t, top)
	site := top.Sites[0]
	lost := links.Rule{Effect: links.Drop}
	for _, n := range site.Nodes {
		if n != old {
			lost.To = append(lost.To, links.Party(n.Name))
		}
	}
	for _, n := range site.seeds {
		lost.From = append(lost.From, links.Party(n.Name))
	}
	ctx, cancel := context.WithTimeout(t.Context(), live.Deadline)
	defer cancel()
	var heal func()
	live.Again(t, func(int) string {
		heal = apply(t, top, lost)
		err := site.seeds[0].Do(ctx, "SENTINEL", "FAILOVER", site.Master).Err()
		if err == nil {
			return ""
		}
		heal() // a sentinel notices after a second that it cannot reach the replicas
		succeeds(t, "healthy servers", func() error { return top.healthy(ctx) })
		return err.Error()
	})
	moved := make(chan error, 1)
	go func() {
		next, err := site.Failover(ctx, old)
		if err == nil && next == old {
			err = errors.New("moved to the same node")
		}
		moved <- err
	}()
	succeeds(t, "that the sentinel gives up", func() error {
		left, err := site.left(ctx, site.seeds[0], old)
		if left {
			err = errors.New("in progress")
		}
		return err
	})
	heal()
	if err := <-moved; err != nil {
		t.Error(err)
	}
}

// TestMinReplicas: a primary accepts no writes without a replica that follows it, even if it was just promoted.
func TestMinReplicas(t *testing.T) {
	t.Parallel()
	top := up(t, "cluster", Options{MinReplicas: 1})
	for _, n := range top.Nodes {
		if got, err := n.Do(t.Context(), "CONFIG", "GET", "min-replicas-*").StringSlice(); err != nil ||
			len(got) != 4 ||
			got[1] != "1" || got[3] != "1" {
			t.Errorf("%s: %q, %v", n.Name, got, err)
		}
	}
	if got := top.Settings["min-replicas-to-write"]; got != "1" {
		t.Errorf("the record says %q", got)
	}
	primary := primaryOf(t, top, "k")
	replicas, err := top.Sites[0].Replicas(t.Context(), primary)
	if err != nil || len(replicas) != 1 {
		t.Fatalf("%d replicas, %v", len(replicas), err)
	}
	refuses := func(n *Node) bool {
		return redis.HasErrorPrefix(n.Do(t.Context(), "SET", "k", "v").Err(), "NOREPLICAS")
	}
	if refuses(primary) {
		t.Error("a primary with a replica takes no writes")
	}
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	live.Wait(t, "the replica takes its place, and refuses writes", func() bool { return refuses(replicas[0]) })
	if err := primary.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	live.Wait(t, "it takes writes when it is followed",
		func() bool { return replicas[0].Do(t.Context(), "SET", "k", "v").Err() == nil })
}
