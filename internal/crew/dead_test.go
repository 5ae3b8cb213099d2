package crew

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
	"hammerlock/workload"
)

// TestADeadProcessHoldsNothingBack kills a process in the middle of an acquire: the call never returns, and is known
// not to as soon as nothing is left of its process. What others do afterwards is seen while they do it.
func TestADeadProcessHoldsNothingBack(t *testing.T) {
	t.Parallel()
	c, finish := begun(t, func(o *Orders) { o.Lock, o.Shape.TTL = named(t, "fence-after"), 100*time.Millisecond })
	lanes, slack := c.Lanes, c.Slack
	m := history.NewMerge(c.Clock, lanes)
	m.Slack = slack
	h := &history.History{Header: history.Header{Workers: 6, Processes: 3, Keys: 1}}
	h.Bounds.Slack = slack
	emit := func(op *history.Op) { h.Ops = append(h.Ops, *op) }

	caught, err := c.Gate.Catch(t.Context(), workload.Between, workload.AnyKey)
	if err != nil {
		t.Fatal(err)
	}
	victim := c.Processes[caught.Worker/2]
	if err := victim.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := c.Clock.Now()
	until(t, func() bool { m.Drain(emit); return victim.Dead() })
	if final := m.Drain(emit); final >= killed {
		t.Errorf("complete to %v, but a call of w%02d was open when it was killed at %v", final, caught.Worker, killed)
	}
	for _, lane := range victim.Lanes {
		m.Abandon(lane)
	}
	until(t, func() bool { return m.Drain(emit) > killed+300*time.Millisecond })
	if last := h.Ops[len(h.Ops)-1]; last.Return <= killed || last.Worker/2 == caught.Worker/2 {
		t.Errorf("the last that was seen is %+v", last)
	}
	finish()
	m.Flush(emit)
	if err := h.Validate(); err != nil {
		t.Error(err)
	}
	open := 0
	for i := range h.Ops {
		if op := &h.Ops[i]; op.Return == history.Forever && op.Worker == caught.Worker {
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

// TestAnEmptyPlaceEndsInAnError lets a worker die whose successor cannot be opened.
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
	done := make(chan error, 1)
	go func() {
		_, err := c.Run(t.Context(), t.Context())
		done <- err
	}()
	caught, err := s.Gate.Catch(t.Context(), workload.Loaded, workload.AnyKey)
	if err != nil {
		t.Fatal(err)
	}
	caught.Die()
	until(t, func() bool {
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

// begun lets a crew of three processes work until finish is called, which returns its report.
func begun(t *testing.T, change func(*Orders)) (s *Session, finish func() Report) {
	t.Helper()
	o, top := deployment(t)
	o.Shape.End, o.To = time.Minute, time.Minute
	change(&o)
	c, err := Spread(t.Context(), o, 3, top.Spawn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if s, err = c.Begin(nil); err != nil {
		t.Fatal(err)
	}
	stop, end := context.WithCancel(t.Context())
	done := make(chan Report, 1)
	go func() {
		r, err := c.Run(t.Context(), stop)
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	return s, func() Report {
		end()
		return <-done
	}
}

// until looks again and again until something is so.
func until(t *testing.T, look func() bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for range 30_000 {
		if look() {
			return
		}
		<-ticker.C
	}
	t.Fatal("it did not come to that")
}
