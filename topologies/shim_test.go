package topologies

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hammerlock/internal/live"
)

// shows fails the test unless a node's clock is ahead of true time by the offset. The node may read it at any moment
// between the two readings of true time.
func shows(t *testing.T, n *Node, offset time.Duration) {
	t.Helper()
	const slack = 100 * time.Millisecond
	before := time.Now()
	at, err := n.control.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	if at.Before(before.Add(offset-slack)) || at.After(time.Now().Add(offset+slack)) {
		t.Errorf("%s is to be off by %v and shows %v, after %v", n.Name, offset, at, before)
	}
}

func TestSetClock(t *testing.T) {
	t.Parallel()
	top := up(t, "redlock", Options{Clock: true})
	n, other := top.Nodes[0], top.Nodes[1]
	for _, offset := range []time.Duration{0, 30 * time.Second, -20 * time.Second, time.Hour, -1500 * time.Millisecond,
		0} {
		if err := n.SetClock(offset, 1); err != nil {
			t.Fatal(err)
		}
		shows(t, n, offset)
	}
	if err := n.SetClock(time.Minute, 1); err != nil {
		t.Fatal(err)
	}
	shows(t, other, 0)
	if err := errors.Join(n.Kill(), n.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	shows(t, n, time.Minute)
}

// TestClockEndsLeases: a lease ends by the node's clock.
func TestClockEndsLeases(t *testing.T) {
	t.Parallel()
	top := up(t, "single", Options{Clock: true})
	n, c := top.Nodes[0], client(t, top, ClientOptions{})
	take := func() bool {
		granted, err := c.SetNX(t.Context(), "lock", "v", time.Hour).Result()
		if err != nil {
			t.Fatal(err)
		}
		return granted
	}
	steps := []struct {
		offset  time.Duration
		granted bool
	}{{0, true}, {0, false}, {3 * time.Hour, true}, {3 * time.Hour, false}, {time.Hour, false}}
	for i, s := range steps {
		if err := n.SetClock(s.offset, 1); err != nil {
			t.Fatal(err)
		}
		if granted := take(); granted != s.granted {
			t.Errorf("step %d, clock at %v: granted %v", i, s.offset, granted)
		}
	}
	if left := c.PTTL(t.Context(), "lock").Val(); left < 2*time.Hour {
		t.Errorf("the clock went back by two hours and a lease of one has %v left", left)
	}
}

func TestClockRate(t *testing.T) {
	t.Parallel()
	top := up(t, "single", Options{Clock: true})
	n := top.Nodes[0]
	const rate, slack = 100, time.Second
	least := time.Now()
	if err := n.SetClock(0, rate); err != nil {
		t.Fatal(err)
	}
	most := time.Now()
	gained := func(since, now time.Time) time.Time { return since.Add(rate * now.Sub(since)) }
	live.Wait(t, "a gain of 20 s", func() bool {
		before := time.Now()
		at, err := n.control.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		if after := time.Now(); at.Before(gained(most, before).Add(-slack)) ||
			at.After(gained(least, after).Add(slack)) {
			t.Fatalf("a hundredfold from %v on it shows %v at %v", least, at, before)
		}
		return at.After(before.Add(20 * time.Second))
	})
	if err := n.SetClock(0, 1); err != nil {
		t.Fatal(err)
	}
	shows(t, n, 0)
	for _, rate := range []float64{-1, math.NaN(), 1e6} {
		if n.SetClock(0, rate) == nil {
			t.Errorf("took rate %v", rate)
		}
	}
}

// TestCrashAndPowerLoss writes an old key and waits until it is on the disk. Then it writes a lock and breaks the
// node immediately.
func TestCrashAndPowerLoss(t *testing.T) {
	t.Parallel()
	crash, power := (*Node).Kill, (*Node).PowerLoss
	cases := map[string]struct {
		durable   Durability
		breaks    func(*Node) error
		old, lock bool // whether these keys survive
	}{
		"crash, no log":      {"", crash, false, false},
		"crash, no sync":     {SyncNever, crash, true, true},
		"crash, everysec":    {SyncEverySecond, crash, true, true},
		"crash, always":      {SyncAlways, crash, true, true},
		"power, no sync":     {SyncNever, power, false, false},
		"power, everysec":    {SyncEverySecond, power, true, false},
		"power, always":      {SyncAlways, power, true, true},
		"twice, always":      {SyncAlways, twice, true, true},
		"twice, no sync":     {SyncNever, twice, false, false},
		"twice, everysecond": {SyncEverySecond, twice, true, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := up(t, "single", Options{Durable: c.durable, Power: true})
			n, cl := top.Nodes[0], client(t, top, ClientOptions{})
			live.Again(t, func(try int) string {
				set := func(key string) {
					succeeds(t, "a client's write", func() error {
						return cl.Set(t.Context(), key, try,
							time.Hour).Err()
					})
				}
				set("old")
				settle(t, n, c.durable)
				set("lock")
				if err := errors.Join(c.breaks(n), n.Start(t.Context())); err != nil {
					t.Fatal(err)
				}
				has := func(key string) bool { return n.Do(t.Context(), "GET", key).Val() == strconv.Itoa(try) }
				old, lock := has("old"), has("lock")
				if c.durable == SyncEverySecond && old && lock && !c.lock {
					return "the log was synced between the lock and the end"
				}
				if c.durable == SyncEverySecond && old && !lock && c.lock { // up to two seconds: flushAppendOnlyFile
					return "a sync of the log was under way, for which the server puts off a write that it answers"
				}
				if old != c.old || lock != c.lock {
					t.Errorf("survived: old %v, want %v; lock %v, want %v", old, c.old, lock, c.lock)
				}
				return ""
			})
		})
	}
}

func twice(n *Node) error {
	return errors.Join(n.PowerLoss(), n.Start(context.Background()), n.PowerLoss())
}

// settle waits until all writes are on the disk, if the server syncs by itself.
func settle(t *testing.T, n *Node, d Durability) {
	t.Helper()
	if d == SyncEverySecond {
		succeeds(t, "a log that is synced", func() error { return allSynced(n) })
	}
}

func allSynced(n *Node) error {
	// during one sync, acknowledged writes may wait for the next
	info, err := n.Info(context.Background(), "persistence")
	if err != nil {
		return err
	}
	if kept := info["aof_buffer_length"]; kept != "0" {
		return fmt.Errorf("%s bytes are not written yet", kept)
	}
	synced, err := readSynced(n.syncedPath())
	if err != nil {
		return err
	}
	logs, err := filepath.Glob(filepath.Join(n.dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(logs) != 1 {
		return fmt.Errorf("logs %v, %v", logs, err)
	}
	file, err := os.Stat(logs[0])
	if err != nil {
		return err
	}
	if got := synced[file.Sys().(*syscall.Stat_t).Ino]; got == 0 || got != uint64(file.Size()) {
		return fmt.Errorf("synced %d of %d bytes", got, file.Size())
	}
	return nil
}

func TestShimsThatAreRefused(t *testing.T) {
	s := server(t)
	if _, err := single.Up(t.Context(), Options{Server: s, Durable: "often"}); err == nil ||
		!strings.Contains(err.Error(), "everysec") {
		t.Errorf("got %v, want the good names", err)
	}
	plain := up(t, "single", Options{Server: s})
	if plain.Nodes[0].SetClock(0, 1) == nil || plain.Nodes[0].PowerLoss() == nil {
		t.Error("a node without shims took a clock or a power loss")
	}
	t.Setenv("PATH", t.TempDir())
	for _, o := range []Options{{Clock: true}, {Durable: SyncAlways, Power: true}} {
		o.Server = s
		if _, err := single.Up(t.Context(), o); !errors.Is(err, errNoCompiler) {
			t.Errorf("got %v, want ErrNoCompiler", err)
		}
	}
}

func TestEveryTopologyWithAllOptions(t *testing.T) {
	t.Parallel()
	for _, s := range All {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			top := up(t, s.Name, Options{Links: true, Clock: true, Durable: SyncAlways, Power: true})
			c := client(t, top, ClientOptions{Source: 1})
			succeeds(t, "a client's write", func() error { return c.Set(t.Context(), "k", "v", 0).Err() })
			n := primaryOf(t, top, "k")
			if err := errors.Join(n.PowerLoss(), n.Start(t.Context())); err != nil {
				t.Fatal(err)
			}
			healthyAgain(t, top, c, "k")
			if err := n.SetClock(time.Second, 1); err != nil {
				t.Error(err)
			}
		})
	}
}
