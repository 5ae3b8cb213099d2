package crew

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/locks"
	"hammerlock/locks/known"
)

// TestAKilledProcessIsCalledKilled kills a worker process from outside. The error names the signal.
func TestAKilledProcessIsCalledKilled(t *testing.T) {
	t.Parallel()
	o, top := deployment(t)
	c, err := Spread(t.Context(), o, 3, top.Spawn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	s, err := c.Begin(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(s.Processes[1].cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	stop, end := context.WithCancel(t.Context())
	end()
	if _, err = c.Run(t.Context(), stop); err == nil ||
		!strings.Contains(err.Error(), "worker process 1: it ended unexpectedly: signal: killed") {
		t.Errorf("got %v", err)
	}
}

// panicsLater is a lease that panics in the second process, in a separate goroutine.
var panicsLater = func() locks.Spec {
	spec, _ := known.Find("lease")
	open := spec.Open
	spec.Name, spec.Open = "panics-later", func(e locks.Env) (locks.Lock, error) {
		if e.Source == 2 {
			time.AfterFunc(100*time.Millisecond, func() { panic("no answer") })
		}
		return open(e)
	}
	return spec
}()

// TestAProcessThatPanicsIsReported: the report has its workers and its last output. The other processes work on.
func TestAProcessThatPanicsIsReported(t *testing.T) {
	t.Parallel()
	o, top := deployment(t)
	o.Lock = panicsLater
	c, err := Spread(t.Context(), o, 3, top.Spawn)
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Begin(nil)
	if err != nil {
		t.Fatal(err)
	}
	stop, end := context.WithCancel(t.Context())
	go func() {
		defer end()
		live.Wait(t, "the end of the process", s.Processes[1].Dead)
	}()
	report, err := c.Run(t.Context(), stop)
	if err = errors.Join(err, c.Close()); err != nil || len(report.Crashes) != 1 {
		t.Fatalf("got %+v, %v", report.Crashes, err)
	}
	if b := report.Crashes[0]; b.Process != 1 || !slices.Equal(b.Workers, []int32{2, 3}) || b.At <= 0 ||
		b.Said[0] != "panic: no answer" ||
		b.Text != "worker process 1 ended unexpectedly (exit status 2)" {
		t.Errorf("got %+v", b)
	}
}

// TestAStoppedProcessRecordsAGap stops a worker process for a while. That process records a gap of at least that
// length, and no other process does.
func TestAStoppedProcessRecordsAGap(t *testing.T) {
	t.Parallel()
	w := begun(t, func(*Orders) {})
	seen := 0
	// spans returns the gaps of each process that cover the time between two moments.
	spans := func(from, to time.Duration) (n [3]int) {
		for _, op := range w.Ops[seen:] {
			if op.Kind == history.Gap && op.Call <= from+w.Slack && op.Return >= to-w.Slack {
				n[op.Process]++
			}
		}
		return n
	}
	live.Again(t, func(int) string {
		from := len(w.Ops)
		w.until("work of the process", func() bool {
			return slices.ContainsFunc(w.Ops[from:], func(op history.Op) bool { return op.Process == 2 })
		})
		seen = len(w.Ops)
		victim := w.Processes[2]
		if err := victim.Stop(); err != nil {
			t.Fatal(err)
		}
		live.Wait(t, "the stop", func() bool { return stopped(victim.cmd.Process.Pid) })
		stop := w.Clock.Now()
		w.until("a stop that is long enough", func() bool { return w.Clock.Now() > stop+2*gap })
		resume := w.Clock.Now()
		if err := victim.Continue(); err != nil {
			t.Fatal(err)
		}
		w.until("the gap", func() bool { return spans(stop, resume)[2] > 0 })
		if n := spans(stop, resume); n[0]+n[1] > 0 {
			return fmt.Sprintf("other processes stood still as well: %v", n)
		}
		return ""
	})
	w.finish()
}

// stopped tells whether all threads of a process are stopped.
func stopped(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	return err == nil && len(threads) > 0 && !slices.ContainsFunc(threads, func(stat string) bool {
		text, err := os.ReadFile(stat)
		return err != nil || !strings.Contains(string(text), ") T ")
	})
}

// TestABoardWithoutRoom: if there is no room for the memory of all lanes, that is an error, and not a signal at the
// first write. The test runs alone, since the limit is for the whole process.
func TestABoardWithoutRoom(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
			t.Error(err)
		}
	})
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 20, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	if _, err := makeBoard(64, 1<<10); err == nil || !strings.Contains(err.Error(), "make the shared memory") {
		t.Errorf("got %v", err)
	}
}
