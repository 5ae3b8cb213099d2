package faults

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"hammerlock/internal/live"
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

// TestLiveALateFailoverTakesNoWrites: the old primary refuses writes before the failover, even if it has more replicas
// than the topology has nodes. Each reader of the replication stream counts as a replica.
func TestLiveALateFailoverTakesNoWrites(t *testing.T) {
	top := testbed.Up(t, "replica", topologies.Options{})
	n, site := top.Nodes[0], top.Sites[0].Access()
	for range len(top.Nodes) {
		reader, err := net.Dial("tcp", site.Addrs[0])
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		answers := bufio.NewReader(reader)
		for _, command := range []string{"AUTH " + site.Password, "REPLCONF listening-port 65535", "PSYNC ? -1"} {
			_, _ = fmt.Fprintf(reader, "%s\r\n", command)
			if _, err := answers.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		go func() { _, _ = io.Copy(io.Discard, answers) }()
		go func() {
			for err := error(nil); err == nil; <-time.After(20 * time.Millisecond) {
				_, err = io.WriteString(reader, "REPLCONF ACK 0\r\n")
			}
		}()
	}
	live.Wait(t, "the readers", func() bool {
		return strings.Count(n.Do(t.Context(), "INFO").String(), "state=online") == 2*len(top.Nodes)-1
	})
	target := &Target{Scene: single, Topology: top, Rand: rand.New(rand.NewPCG(1, 1)), TTL: 300 * time.Millisecond,
		Keys: 1, LockKey: func(int32) string { return "page" }}
	done := make(chan error)
	go func() {
		_, _, err := failoverLate.Inject(t.Context(), target)
		done <- err
	}()
	live.Wait(t, "the primary to refuse writes", func() bool {
		return n.Do(t.Context(), "SET", "page", "w0").Err() != nil
	})
	if info, err := n.Info(t.Context(), "replication"); err != nil || info["role"] != "master" {
		t.Errorf("it took writes until it was replaced: %v, %v", info["role"], err)
	}
	if err := <-done; err != nil {
		t.Error(err)
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
