package crew

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"hammerlock/history"
)

// TestAKilledProcessIsCalledKilled kills a worker process from outside: the error names the signal.
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
	if _, err = c.Run(t.Context(), t.Context()); err == nil || !strings.Contains(err.Error(), "worker process 1: it ended by itself: signal: killed") {
		t.Errorf("got %v", err)
	}
}

// TestAStoppedProcessRecordsAGap stops a worker process for a while: it says so, and no other does.
func TestAStoppedProcessRecordsAGap(t *testing.T) {
	t.Parallel()
	const stopped = 600 * time.Millisecond
	s, finish := begun(t, func(*Orders) {})
	merge := history.NewMerge(s.Clock, s.Lanes)
	merge.Slack = s.Slack
	var longest [3]time.Duration
	works := false
	emit := func(op *history.Op) {
		works = works || op.Process == 2
		if op.Kind == history.Gap {
			longest[op.Process] = max(longest[op.Process], op.Latency())
		}
	}
	pause := func(d time.Duration) {
		end := s.Clock.Now() + d
		until(t, func() bool { merge.Drain(emit); return s.Clock.Now() > end })
	}
	until(t, func() bool { merge.Drain(emit); return works })
	pause(100 * time.Millisecond) // its heart beats
	err := s.Processes[2].Stop()
	pause(stopped)
	if err := errors.Join(err, s.Processes[2].Continue()); err != nil {
		t.Fatal(err)
	}
	pause(100 * time.Millisecond)
	finish()
	merge.Flush(emit)
	if longest[2] < stopped*2/3 || max(longest[0], longest[1]) >= longest[2] { // on a busy machine it runs on for a moment
		t.Errorf("the longest gaps are %v", longest)
	}
}

// TestABoardWithoutRoom has nowhere to put the memory of all lanes: that is an error, and not a signal at the first write.
func TestABoardWithoutRoom(t *testing.T) {
	t.Parallel()
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
