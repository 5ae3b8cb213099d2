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
)

// shown is what the node takes for the time, less the true time.
func shown(t *testing.T, n *Node) time.Duration {
	t.Helper()
	at, err := n.control.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return time.Until(at)
}

func TestSetClock(t *testing.T) {
	t.Parallel()
	top := up(t, "redlock", Options{Clock: true})
	n, other := top.Nodes[0], top.Nodes[1]
	for _, offset := range []time.Duration{0, 30 * time.Second, -20 * time.Second, time.Hour, -1500 * time.Millisecond, 0} {
		if err := n.SetClock(offset, 1); err != nil {
			t.Fatal(err)
		}
		if got := shown(t, n); (got - offset).Abs() > 500*time.Millisecond {
			t.Errorf("set by %v, shown %v", offset, got)
		}
	}
	if err := n.SetClock(time.Minute, 1); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, other); got.Abs() > 500*time.Millisecond {
		t.Errorf("%s was not touched and is off by %v", other.Name, got)
	}
	if err := errors.Join(n.Kill(), n.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, n); (got - time.Minute).Abs() > 500*time.Millisecond {
		t.Errorf("after a restart: %v", got)
	}
}

// TestClockEndsLeases is what a clock is set for.
func TestClockEndsLeases(t *testing.T) {
	t.Parallel()
	top := up(t, "single", Options{Clock: true})
	n, c := top.Nodes[0], client(t, top, ClientOptions{})
	take := func() bool {
		granted, err := c.SetNX(t.Context(), "lock", "v", 10*time.Second).Result()
		if err != nil {
			t.Fatal(err)
		}
		return granted
	}
	steps := []struct {
		offset  time.Duration
		granted bool
	}{{0, true}, {0, false}, {30 * time.Second, true}, {30 * time.Second, false}, {10 * time.Second, false}}
	for i, s := range steps {
		if err := n.SetClock(s.offset, 1); err != nil {
			t.Fatal(err)
		}
		if granted := take(); granted != s.granted {
			t.Errorf("step %d, clock at %v: granted %v", i, s.offset, granted)
		}
	}
	if left := c.PTTL(t.Context(), "lock").Val(); left < 20*time.Second {
		t.Errorf("the clock went back by 20 s and a lease of 10 s has %v left", left)
	}
}

func TestClockRate(t *testing.T) {
	t.Parallel()
	top := up(t, "single", Options{Clock: true})
	n := top.Nodes[0]
	start := time.Now()
	if err := n.SetClock(0, 100); err != nil {
		t.Fatal(err)
	}
	if err := poll(within(t, 10*time.Second), time.Millisecond, func() error {
		if shown(t, n) < 20*time.Second {
			return errors.New("too slow")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 195*time.Millisecond {
		t.Errorf("gained 20 s within %v at a hundredfold rate", took)
	}
	if err := n.SetClock(0, 1); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, n); got.Abs() > 500*time.Millisecond {
		t.Errorf("healed, and off by %v", got)
	}
	for _, rate := range []float64{-1, math.NaN(), 1e6} {
		if n.SetClock(0, rate) == nil {
			t.Errorf("took rate %v", rate)
		}
	}
}

// TestCrashAndPowerLoss writes an old key, lets it settle, writes a lock and breaks the node
// at once.
func TestCrashAndPowerLoss(t *testing.T) {
	t.Parallel()
	crash, power := (*Node).Kill, (*Node).PowerLoss
	cases := map[string]struct {
		durable   Durability
		breaks    func(*Node) error
		old, lock bool // what survives
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
			top := up(t, "single", Options{Durable: c.durable})
			n, cl := top.Nodes[0], client(t, top, ClientOptions{})
			// A log that is synced every second may be synced just between the lock and the end: then again.
			var old, lock bool
			for tries := 0; tries < 6 && (tries == 0 || c.durable == SyncEverySecond && lock != c.lock); tries++ {
				set := func(key string) {
					if err := cl.Set(t.Context(), key, tries, time.Minute).Err(); err != nil {
						t.Fatal(err)
					}
				}
				set("old")
				settle(t, n, c.durable)
				set("lock")
				if err := errors.Join(c.breaks(n), n.Start(t.Context())); err != nil {
					t.Fatal(err)
				}
				has := func(key string) bool { return n.Do(t.Context(), "GET", key).Val() == strconv.Itoa(tries) }
				old, lock = has("old"), has("lock")
			}
			if old != c.old || lock != c.lock {
				t.Errorf("survived: old %v, want %v; lock %v, want %v", old, c.old, lock, c.lock)
			}
		})
	}
}

func twice(n *Node) error {
	return errors.Join(n.PowerLoss(), n.Start(context.Background()), n.PowerLoss())
}

// settle waits until what was written is on the disk, where it gets there by itself.
func settle(t *testing.T, n *Node, d Durability) {
	t.Helper()
	if d != SyncEverySecond {
		return
	}
	if err := poll(within(t, 10*time.Second), time.Millisecond, func() error { return allSynced(n) }); err != nil {
		t.Fatal(err)
	}
}

func allSynced(n *Node) error {
	info, err := n.Info(context.Background(), "persistence") // while one sync lasts, what is written next is kept back, although it was acknowledged
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
	if _, err := single.Up(t.Context(), Options{Server: s, Durable: "often"}); err == nil || !strings.Contains(err.Error(), "everysec") {
		t.Errorf("got %v, want the good names", err)
	}
	plain := up(t, "single", Options{Server: s})
	if plain.Nodes[0].SetClock(0, 1) == nil || plain.Nodes[0].PowerLoss() == nil {
		t.Error("a node without shims took a clock or a power loss")
	}
	t.Setenv("PATH", t.TempDir())
	for _, o := range []Options{{Clock: true}, {Durable: SyncAlways}} {
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
			top := up(t, s.Name, Options{Links: true, Clock: true, Durable: SyncAlways})
			c := client(t, top, ClientOptions{Source: 1})
			if err := poll(within(t, 10*time.Second), pollEvery, func() error { return c.Set(t.Context(), "k", "v", 0).Err() }); err != nil {
				t.Fatal(err)
			}
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
