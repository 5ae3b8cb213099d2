package crew

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/locks"
	"hammerlock/workload"
)

// TestADeadProcessHoldsNothingBack kills a process during an acquire. That call never returns, which is known as soon
// as its process is gone. Later operations of others are seen while they happen.
func TestADeadProcessHoldsNothingBack(t *testing.T) {
	t.Parallel()
	w := begun(t, func(o *Orders) { o.Lock, o.Shape.TTL = named(t, "fence-after"), 100*time.Millisecond })
	caught, err := w.Gate.Catch(t.Context(), workload.Between, workload.AnyKey)
	if err != nil {
		t.Fatal(err)
	}
	victim := w.Processes[caught.Worker/2]
	if err := victim.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := w.Clock.Now()
	w.until("that the process is known to be dead", victim.Dead)
	if final := w.drain(); final >= killed {
		t.Errorf("complete to %v, but a call of w%02d was open when it was killed at %v", final, caught.Worker, killed)
	}
	for _, lane := range victim.Lanes {
		w.merge.Abandon(lane)
	}
	w.until("what others do afterwards", func() bool {
		if len(w.Ops) == 0 {
			return false
		}
		last := w.Ops[len(w.Ops)-1]
		return last.Return > killed && last.Worker/2 != caught.Worker/2
	})
	w.finish()
	open := 0
	for i := range w.Ops {
		if op := &w.Ops[i]; op.Return == history.Forever && op.Worker == caught.Worker {
			open++
			if op.Kind != history.Acquire || op.Outcome != history.Unknown || op.Call >= killed {
				t.Errorf("the open call is %+v", op)
			}
		}
	}
	if open != 1 {
		t.Errorf("w%02d left %d open calls", caught.Worker, open)
	}
	if err := errors.Join(victim.Kill(), victim.Stop(), victim.Continue()); err != nil {
		t.Errorf("signals to a dead process: %v", err)
	}
}

// TestAnEmptyPlaceEndsInAnError: a worker dies, and its successor cannot be opened.
func TestAnEmptyPlaceEndsInAnError(t *testing.T) {
	t.Parallel()
	o, _ := deployment(t)
	c, err := Local(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	s, err := c.Begin(make(chan struct{}, 1))
	if err != nil {
		t.Fatal(err)
	}
	m := history.NewMerge(s.Clock, s.Lanes)
	nothing := errors.New("no room")
	c.(*local).team.crew.Reopen = func(int) (locks.Lock, error) { return nil, nothing }
	stop, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.Run(t.Context(), stop)
		done <- err
	}()
	caught, err := s.Gate.Catch(t.Context(), workload.Loaded, workload.AnyKey)
	if err != nil {
		t.Fatal(err)
	}
	caught.Die()
	end()
	live.Wait(t, "the end of the run", func() bool {
		m.Drain(func(*history.Op) {})
		select {
		case err = <-done:
			return true
		default:
			return false
		}
	})
	if err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("got %v", err)
	}
}
