package crew

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/internal/testbed"
	"hammerlock/locks"
	"hammerlock/locks/catalogue"
	"hammerlock/locks/known"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// TestMain runs a worker process if it is started as one.
func TestMain(m *testing.M) {
	os.Exit(Main(context.Background(), Catalogue{Locks: append(known.Locks, panicsLater),
		Counters: workload.AllCounters}, m.Run))
}

// deployment starts a lock's and a counter's server. It returns orders for six workers, who work until they are told
// to stop.
func deployment(t *testing.T) (Orders, *topologies.Topology) {
	t.Helper()
	top := testbed.Up(t, "single", topologies.Options{})
	access := top.Sites[0].Access()
	return Orders{
		Shape: workload.Shape{
			Workers: 6, Keys: 1, Popularity: workload.Even, TTL: 2 * time.Second, Hold: time.Millisecond,
			Wait:  time.Hour,
			Retry: time.Millisecond, End: time.Hour, Seed: 1,
		},
		Lock: catalogue.All[0], Sites: []topologies.Access{access},
		Counter: Counter{Spec: workload.RedisCounter, Access: &access}, Judged: true, To: time.Hour,
	}, top
}

// named returns a lock of the catalogue.
func named(t *testing.T, name string) locks.Spec {
	t.Helper()
	s, ok := known.Find(name)
	if !ok {
		t.Fatalf("no lock %s", name)
	}
	return s
}

// working is a crew of three processes at work, with the history that was seen so far.
type working struct {
	*Session
	history.History
	t     *testing.T
	merge *history.Merge
	stop  context.CancelFunc
	done  chan Report
}

// begun lets a crew work until finish is called.
func begun(t *testing.T, change func(*Orders)) *working {
	t.Helper()
	o, top := deployment(t)
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
	w := &working{t: t, done: make(chan Report, 1)}
	if w.Session, err = c.Begin(nil); err != nil {
		t.Fatal(err)
	}
	if w.Slack <= 0 || w.Slack > time.Millisecond {
		t.Errorf("slack %v", w.Slack)
	}
	w.merge = history.NewMerge(w.Clock, w.Lanes)
	w.merge.Slack = w.Slack
	w.Header = history.Header{Workers: 6, Processes: 3, Keys: 1}
	w.Bounds.Slack = w.Slack
	stop, end := context.WithCancel(t.Context())
	w.stop = end
	go func() {
		r, err := c.Run(t.Context(), stop)
		if err != nil {
			t.Error(err)
		}
		w.done <- r
	}()
	return w
}

// drain takes the final operations, and returns the time up to which they are final.
func (w *working) drain() time.Duration {
	return w.merge.Drain(func(op *history.Op) { w.Ops = append(w.Ops, *op) })
}

// until takes operations until a condition holds.
func (w *working) until(what string, reached func() bool) {
	w.t.Helper()
	live.Wait(w.t, what, func() bool {
		w.drain()
		return reached()
	})
}

// finish lets the visits in progress end, and takes the remaining operations.
func (w *working) finish() (r Report) {
	w.t.Helper()
	w.stop()
	w.until("the report", func() bool {
		select {
		case r = <-w.done:
			return true
		default:
			return false
		}
	})
	w.merge.Flush(func(op *history.Op) { w.Ops = append(w.Ops, *op) })
	if err := w.Validate(); err != nil {
		w.t.Error(err)
	}
	return r
}

// TestProcessesGiveOneHistory merges the operations of three processes. The result must be as sound as the history of
// one process.
func TestProcessesGiveOneHistory(t *testing.T) {
	t.Parallel()
	w := begun(t, func(*Orders) {})
	of, ends, seen := map[int32]int16{}, int64(0), 0
	look := func() {
		for ; seen < len(w.Ops); seen++ {
			if op := &w.Ops[seen]; op.Kind == history.End {
				of[op.Worker] = op.Process
				ends++
			}
		}
	}
	w.until("visits of every worker", func() bool { look(); return len(of) == 6 && ends > 100 })
	report := w.finish()
	look()
	for worker, p := range of {
		if p != int16(worker/2) {
			t.Errorf("worker %d is of process %d", worker, p)
		}
	}
	if ends != report.Begun || len(report.RoundTrips) < 2 || report.RoundTrips[0].Count == 0 {
		t.Errorf("%d visits ended, %+v", ends, report)
	}
}

// TestAKilledProcessLeavesItsHistory kills a process while one of its workers is between load and store. A call of its
// other worker may be open.
func TestAKilledProcessLeavesItsHistory(t *testing.T) {
	t.Parallel()
	w := begun(t, func(*Orders) {})
	caught, err := w.Gate.Catch(t.Context(), workload.Loaded, workload.AnyKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Processes[caught.Worker/2].Kill(); err != nil {
		t.Error(err)
	}
	caught.Go()
	w.finish()
	var last, open history.Op
	for _, op := range w.Ops {
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

// TestAProcessThatCannotStart: the error tells the reason.
func TestAProcessThatCannotStart(t *testing.T) {
	t.Parallel()
	o, _ := deployment(t)
	nothing := errors.New("no room")
	if _, err := Spread(t.Context(), o, 2, func(*exec.Cmd) error { return nothing }); !errors.Is(err, nothing) {
		t.Errorf("got %v", err)
	}
	o.Lock.Name = "padlock"
	top := testbed.Up(t, "single", topologies.Options{})
	if _, err := Spread(t.Context(), o, 2, top.Spawn); err == nil ||
		err.Error() != `worker process 0: this program has no lock "padlock" or no counter "redis"` {
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
