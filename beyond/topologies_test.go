package beyond_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hammerlock/beyond"
	"hammerlock/topologies"
)

// times is how often each topology is started, broken and healed; with -short once.
const times = 50

// each runs a test on every topology whose servers are installed.
func each(t *testing.T, test func(*testing.T, topologies.Spec)) {
	for _, s := range beyond.Catalogue.Topologies {
		t.Run(s.Name, func(t *testing.T) {
			if err := s.Installed(t.Context()); err != nil {
				t.Skip(err)
			}
			test(t, s)
		})
	}
}

// TestNothingIsLeft starts, breaks and heals every topology repeatedly, in different ways. No processes, directories or
// shared memory may be left.
func TestNothingIsLeft(t *testing.T) {
	// a directory of its own, without the processes of other runs; its path is short, because paths of sockets must be
	short, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	if err := os.Chmod(short, 0o755); err != nil { // servers run as other users
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", short)
	each(t, func(t *testing.T, s topologies.Spec) {
		n := times
		if testing.Short() {
			n = 1
		}
		before := traces(t)
		for i := range n {
			once(t, s, i+1) // turn 1 is a restart behind links
		}
		if after := traces(t); after != before {
			t.Errorf("left behind: got %s, want %s", after, before)
		}
	})
}

// once starts a topology, breaks and heals it, and stops it; every third turn stops it broken.
func once(t *testing.T, s topologies.Spec, turn int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	up, err := s.Up(ctx, topologies.Options{Links: turn%2 == 1})
	if err != nil {
		t.Fatal(err)
	}
	dir := up.Dir()
	node := up.Nodes[turn%len(up.Nodes)]
	steps := []func() error{node.Kill, func() error { return node.Start(ctx) }}
	if turn%2 == 0 {
		steps = []func() error{node.Pause, node.Resume}
	}
	if turn%3 == 2 {
		steps = steps[:1]
	}
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if len(steps) == 2 {
		if err := up.AwaitHealthy(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := up.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is still there", dir)
	}
}

// traces counts what servers may leave: unattached segments of shared memory, and processes in directories of
// topologies.
func traces(t *testing.T) string {
	t.Helper()
	segments, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		t.Skip("no /proc here: ", err)
	}
	orphans := 0
	for line := range strings.Lines(string(segments)) {
		if f := strings.Fields(line); len(f) > 6 && f[6] == "0" {
			orphans++
		}
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	running := 0
	for _, link := range processes {
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, os.TempDir()) &&
			strings.Contains(at, "hammerlock-") {
			running++
		}
	}
	return fmt.Sprintf("%d segments, %d processes", orphans, running)
}
