package deployment

import (
	"testing"
	"time"

	_ "modernc.org/sqlite" // a counter in a file

	"hammerlock/internal/crew"
	"hammerlock/internal/live"
	"hammerlock/locks/catalogue"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// spec describes a deployment on which no worker works.
func spec(t *testing.T, topology, counter string) Spec {
	t.Helper()
	server, err := topologies.FindServer(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	s := Spec{Options: topologies.Options{Server: server}, Processes: 1, Orders: crew.Orders{
		Shape: workload.Shape{Workers: 1, Keys: 1, TTL: time.Second}, Lock: catalogue.All[0],
	}}
	s.Topology, _ = topologies.Find(topology)
	s.Counter, _ = workload.FindCounter(counter)
	return s
}

// TestWarmDeploymentsAreUsedAgain starts a deployment, then a different one, then the first one again. The last has
// the same servers as the first, without keys.
func TestWarmDeploymentsAreUsedAgain(t *testing.T) {
	for _, counter := range []string{"redis", "topology", "sqlite"} {
		t.Run(counter, func(t *testing.T) {
			t.Parallel()
			live.Again(t, func(int) string { return reused(t, counter) })
		})
	}
}

func reused(t *testing.T, counter string) (undecided string) {
	var warm Warm
	seen := map[string]*topologies.Topology{}
	for _, topology := range []string{"replica", "single", "replica", "single"} {
		d, err := warm.Up(t.Context(), spec(t, topology, counter))
		if err != nil {
			t.Fatal(err)
		}
		if before := seen[topology]; before != nil && before != d.Topology {
			undecided = "the deployment " + topology + " was not kept, as if it took too long to be as good as new"
		}
		seen[topology] = d.Topology
		if c, err := d.Views(t.Context()); err != nil || c[0].Views != 0 {
			t.Errorf("%s: the counter begins with %+v, %v", topology, c, err)
		}
		if n := d.Topology.Nodes[0].Do(t.Context(), "DBSIZE").Val(); n != int64(0) {
			t.Errorf("%s has %v keys left", topology, n)
		}
		if err := d.Topology.Nodes[0].Do(t.Context(), "SET", d.Pages[0].Lock, "left").Err(); err != nil {
			t.Fatal(err)
		}
		if err := d.store.counter.Store(t.Context(), d.Pages[0].Views,
			workload.Count{Views: 7, Writer: 1}); err != nil {
			t.Fatal(err)
		}
		if err := warm.Keep(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	if err := warm.Close(); err != nil {
		t.Error(err)
	}
	return undecided
}

// TestWarmDeploymentsThatBrokeAreNot: between two runs a replica is made a primary, as by an election that did not
// end. The next run gets new servers.
func TestWarmDeploymentsThatBrokeAreNot(t *testing.T) {
	t.Parallel()
	var warm Warm
	d, err := warm.Up(t.Context(), spec(t, "replica", "redis"))
	if err != nil {
		t.Fatal(err)
	}
	if err := warm.Keep(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	broken := d.Topology
	if err := broken.Nodes[1].Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	if d, err = warm.Up(t.Context(), spec(t, "replica", "redis")); err != nil {
		t.Fatal(err)
	}
	if d.Topology == broken {
		t.Error("servers with two primaries were taken for the next run")
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
