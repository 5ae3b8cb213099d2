package faults

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"hammerlock/internal/testbed"
	"hammerlock/topologies"
)

// TestLiveALateRestartIsNotHurriedByTheEnd lets the run end while the node is down; the restart must still be late.
// A server that restarts before the longest lease has ended violates an assumption of correct locks, so a checker
// would blame them.
func TestLiveALateRestartIsNotHurriedByTheEnd(t *testing.T) {
	top := testbed.Up(t, "single", topologies.Options{})
	target := &Target{Scene: single, Topology: top, Rand: rand.New(rand.NewPCG(1, 1)), TTL: 300 * time.Millisecond,
		Keys: 1, LockKey: func(int32) string { return "page" }}
	ended, end := context.WithCancel(t.Context())
	end()
	lease := time.NewTimer(target.TTL)
	if _, _, err := restartLate.Inject(ended, target); err != nil {
		t.Fatal(err)
	}
	select {
	case <-lease.C:
	default:
		t.Errorf("the node was back within a lease of %v", target.TTL)
	}
	if got := top.Nodes[0].State(); got != topologies.Up {
		t.Errorf("the node is %v", got)
	}
}

// TestLiveALogBringsAKilledNodeBack with its data, except after restart-empty, which deletes the log.
func TestLiveALogBringsAKilledNodeBack(t *testing.T) {
	top := testbed.Up(t, "single", topologies.Options{Durable: topologies.SyncAlways})
	n := top.Nodes[0]
	target := &Target{Scene: single, Topology: top, Rand: rand.New(rand.NewPCG(1, 1)),
		TTL: 20 * time.Millisecond, Keys: 1,
		LockKey: func(int32) string { return "page" }, Caught: &Caught{Go: func() {}}}
	if err := n.Do(t.Context(), "SET", "page", "w0").Err(); err != nil {
		t.Fatal(err)
	}
	_, heal, err := killPrimary.Inject(t.Context(), target)
	if err != nil || heal(t.Context()) != nil {
		t.Fatal(err)
	}
	if got := content(t.Context(), n, "page"); got != "w0" {
		t.Errorf("killed and started again: it has %q", got)
	}
	if _, _, err := restartEmpty.Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if got := content(t.Context(), n, "page"); got != "" {
		t.Errorf("restarted empty: it has %q", got)
	}
}

// TestLiveANodeToKillIsNamed: the argument chooses the node.
func TestLiveANodeToKillIsNamed(t *testing.T) {
	top := testbed.Up(t, "replica", topologies.Options{})
	target := &Target{Scene: single, Topology: top, Rand: rand.New(rand.NewPCG(1, 1)), Arg: "n3"}
	what, heal, err := killNode.Inject(t.Context(), target)
	if err != nil || what != "killed n3" || top.Nodes[2].State() != topologies.Down ||
		top.Nodes[0].State() != topologies.Up {
		t.Fatalf("got %q, %v, n3 is %v", what, err, top.Nodes[2].State())
	}
	if err := heal(t.Context()); err != nil || top.Nodes[2].State() != topologies.Up {
		t.Errorf("healed: %v, n3 is %v", err, top.Nodes[2].State())
	}
}
