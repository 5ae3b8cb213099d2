package faults

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"hammerlock/internal/testbed"
	"hammerlock/topologies"
)

// TestALateRestartIsNotHurriedByTheEnd lets the run end while the node is down: what comes back before the longest
// lease is over breaks the promise of right locks, and would be blamed on them.
func TestALateRestartIsNotHurriedByTheEnd(t *testing.T) {
	top := testbed.Up(t, "single", topologies.Options{})
	target := &Target{Scene: single, Topology: top, Rand: rand.New(rand.NewPCG(1, 1)), TTL: 300 * time.Millisecond,
		Keys: 1, LockKey: func(int32) string { return "page" }}
	ended, end := context.WithCancel(t.Context())
	end()
	start := time.Now()
	if _, _, err := restartLate.Inject(ended, target); err != nil {
		t.Fatal(err)
	}
	if away := time.Since(start); away < target.TTL {
		t.Errorf("the node was back after %v, within a lease of %v", away, target.TTL)
	}
	if got := top.Nodes[0].State(); got != topologies.Up {
		t.Errorf("the node is %v", got)
	}
}
