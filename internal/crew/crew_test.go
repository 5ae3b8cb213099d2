package crew

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/testbed"
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// TestMain is a worker process if it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Command {
		if Child(context.Background(), os.Stdin, os.Stdout, Catalogue{Locks: known.Locks, Counters: workload.AllCounters}) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// deployment brings up a lock's and a counter's server and returns orders for six workers.
func deployment(t *testing.T) (Orders, *topologies.Topology) {
	t.Helper()
	top := testbed.Up(t, "single", topologies.Options{})
	access := top.Sites[0].Access()
	return Orders{
		Shape: workload.Shape{
			Workers: 6, Keys: 1, Popularity: workload.Even, TTL: 2 * time.Second, Hold: time.Millisecond, Wait: 5 * time.Second,
			Retry: time.Millisecond, End: time.Second, Seed: 1,
		},
		Lock: locks.All[0], Sites: []topologies.Access{access}, Counter: Counter{Spec: workload.RedisCounter, Access: &access}, Judged: true, To: time.Second,
	}, top
}

// named is a lock of the catalogue.
func named(t *testing.T, name string) locks.Spec {
	t.Helper()
	s, ok := known.Find(name)
	if !ok {
		t.Fatalf("no lock %s", name)
	}
	return s
}

// play runs a crew of three processes and returns its history. During runs beside it.
func play(t *testing.T, during func(*Session)) (*history.History, Report) {
	t.Helper()
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
	lanes, slack := s.Lanes, s.Slack
	if slack <= 0 || slack > time.Millisecond {
		t.Errorf("slack %v", slack)
	}
	m := history.NewMerge(s.Clock, lanes)
	m.Slack = slack
	h := &history.History{Header: history.Header{Workers: 6, Processes: 3, Keys: 1}}
	h.Bounds.Slack = slack
	emit := func(op *history.Op) { h.Ops = append(h.Ops, *op) }
	done := make(chan Report)
	go func() {
		r, err := c.Run(t.Context(), t.Context())
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	if during != nil {
		go during(s)
	}
	for ticker := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case <-ticker.C:
			m.Drain(emit)
			continue
		case r := <-done:
			m.Flush(emit)
			return h, r
		}
	}
}

// TestProcessesGiveOneHistory merges the operations of three processes; it must be as sound as one of them.
func TestProcessesGiveOneHistory(t *testing.T) {
	t.Parallel()
	h, report := play(t, nil)
	if err := h.Validate(); err != nil {
		t.Error(err)
	}
	workers, ends := map[int32]int16{}, int64(0)
	for i := range h.Ops {
		workers[h.Ops[i].Worker] = h.Ops[i].Process
		if h.Ops[i].Kind == history.End {
			ends++
		}
	}
	for w := range int32(6) {
		if p, ok := workers[w]; !ok || p != int16(w/2) {
			t.Errorf("worker %d is of process %d, %v", w, p, ok)
		}
	}
	if ends != report.Begun || ends == 0 || report.RoundTrips == 0 {
		t.Errorf("%d visits ended, %+v", ends, report)
	}
}

// TestAKilledProcessLeavesItsHistory kills a process while a worker of it stands between load and store, and a call
// of its other worker may be open.
func TestAKilledProcessLeavesItsHistory(t *testing.T) {
	t.Parallel()
	var caught *workload.Caught
	h, _ := play(t, func(c *Session) {
		var err error
		if caught, err = c.Gate.Catch(t.Context(), workload.Loaded, workload.AnyKey); err != nil {
			t.Error(err)
			return
		}
		if err := c.Processes[caught.Worker/2].Kill(); err != nil {
			t.Error(err)
		}
		caught.Go()
	})
	if err := h.Validate(); err != nil {
		t.Error(err)
	}
	var last, open history.Op
	for _, op := range h.Ops {
		switch {
		case op.Worker == caught.Worker && op.Return != history.Forever:
			last = op
		case op.Return == history.Forever:
			open = op
		}
	}
	if last.Kind != history.Load || last.Hold != caught.Hold {
		t.Errorf("the last that is known of the worker is %+v", last)
	}
	if open.ID != 0 && (open.Outcome != history.Unknown || open.Worker/2 != caught.Worker/2) {
		t.Errorf("an open call: %+v", open)
	}
}

// TestAProcessThatCannotStart says why.
func TestAProcessThatCannotStart(t *testing.T) {
	t.Parallel()
	o, _ := deployment(t)
	nothing := errors.New("no room")
	if _, err := Spread(t.Context(), o, 2, func(*exec.Cmd) error { return nothing }); !errors.Is(err, nothing) {
		t.Errorf("got %v", err)
	}
	o.Lock.Name = "padlock"
	top := testbed.Up(t, "single", topologies.Options{})
	if _, err := Spread(t.Context(), o, 2, top.Spawn); err == nil || err.Error() != `worker process 0: this program has no lock "padlock" or no counter "redis"` {
		t.Errorf("got %v", err)
	}
}

func TestClocksOfAMachineAgree(t *testing.T) {
	t.Parallel()
	moment, shared, doubt := calibrate()
	if doubt <= 0 || doubt > 100*time.Microsecond {
		t.Errorf("doubt %v", doubt)
	}
	for range 1000 {
		before := Monotonic()
		at := clockAt(false, 0, moment, shared).Now()
		after := Monotonic()
		if int64(at) < before-int64(doubt) || int64(at) > after+int64(doubt) {
			t.Fatalf("%v is not between %d and %d", at, before, after)
		}
	}
}
