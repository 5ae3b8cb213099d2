package workload

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"time"

	"hammerlock/history"
)

// After the last visit is due, a lock call may stay open for Workers.Patience. Then its context is cancelled. If the
// call is still open offFor later, the worker is abandoned: Go cannot end the goroutine of a call that ignores its
// context.
const (
	lookEvery = 50 * time.Millisecond
	offFor    = 5 * time.Second
)

// given is the value of worker.turn for an abandoned worker. If the call of this worker returns later, its
// goroutine ends and records nothing.
const given = 1 << 63

// enter is called before each lock call and leave after it, so turn is odd while a call is open.
func (w *worker) enter() { w.turn.Add(1) }

func (w *worker) leave() {
	if at := w.turn.Load(); at == given || !w.turn.CompareAndSwap(at, at+1) {
		runtime.Goexit()
	}
}

// waits describes the open lock call of one worker.
type waits struct {
	turn      uint64
	inside    time.Duration // time inside the call, without the time for which this process was paused
	calledOff time.Duration // when the call's context was cancelled, on the run's clock; 0 = it was not
	ended     bool
}

// watch waits until each worker has ended or was abandoned. It abandons workers only after the End or a stop. A worker
// that ends sends its number on the channel ended. The result lists the calls that watch had to cancel.
func (c *Workers) watch(ctx, stop context.Context, workers []*worker, ended <-chan int) (hung []history.Hung) {
	all, left := make([]waits, len(workers)), len(workers)
	var look, end <-chan time.Time
	stopped := stop.Done()
	if c.Patience == 0 {
		stopped = nil
	} else if c.Shape.End < history.Forever {
		end = time.After(c.Shape.End - c.Clock.Now())
	}
	for last := time.Now(); left > 0; {
		select {
		case i := <-ended:
			if all[i].ended = true; all[i].calledOff > 0 && ctx.Err() == nil {
				hung = append(hung, c.hung(workers[i], &all[i], false))
			}
			left--
			continue
		case <-stopped:
			stopped, look = nil, time.Tick(lookEvery)
		case <-end:
			stopped, look = nil, time.Tick(lookEvery)
		case <-look:
		}
		now := time.Now()
		ran := min(now.Sub(last), 2*lookEvery)
		last = now
		for i, w := range workers {
			if x := &all[i]; !x.ended && c.look(ctx, w, x, ran) {
				x.ended = true
				hung = append(hung, c.hung(w, x, true))
				left--
			}
		}
	}
	return hung
}

// look cancels the contexts of a worker that is inside one call for too long, and later abandons the worker. The
// parameter ran is the time for which this process ran since the previous look. It returns whether it has
// abandoned the worker.
func (c *Workers) look(ctx context.Context, w *worker, x *waits, ran time.Duration) bool {
	turn := w.turn.Load()
	if turn%2 == 0 || turn != x.turn {
		x.turn, x.inside = turn, 0
		return false
	}
	x.inside += ran
	switch {
	case x.calledOff == 0 && (x.inside > c.Patience || ctx.Err() != nil):
		x.inside, x.calledOff = 0, c.Clock.Now()
		w.callOff()
	case x.calledOff > 0 && x.inside > offFor:
		return w.turn.CompareAndSwap(turn, given)
	}
	return false
}

// hung makes the record of a worker whose call was cancelled; givenUp means that the worker was abandoned.
func (c *Workers) hung(w *worker, x *waits, givenUp bool) history.Hung {
	h := history.Hung{Worker: int32(c.Shape.First + w.number), CalledOff: x.calledOff}
	if givenUp {
		h.GivenUp, h.Text = c.Clock.Now(), w.stack()
	}
	return h
}

// mostStack is the largest number of lines that are kept of a stack trace.
const mostStack = 20

// goroutine returns the heading of the calling goroutine's stack trace, such as "goroutine 7".
func goroutine() string {
	var head [64]byte
	name, _, _ := strings.Cut(string(head[:runtime.Stack(head[:], false)]), "[")
	return name
}

// stack returns the stack trace of the worker's goroutine.
func (w *worker) stack() string {
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	for dump := range strings.SplitSeq(string(all), "\n\n") {
		if strings.HasPrefix(dump, w.goroutine) {
			return strings.Join(ofTheLock(dump), "\n")
		}
	}
	return ""
}

// ofTheLock returns the lines of a stack trace that belong to the lock's code. They begin after the panic, if there
// is one, and end before the worker's own code.
func ofTheLock(stack string) []string {
	lines := strings.Split(strings.TrimSpace(stack), "\n")
	if at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "panic(") }); at >= 0 {
		lines = lines[min(at+2, len(lines)):]
	}
	if at := slices.IndexFunc(lines, func(l string) bool {
		return strings.HasPrefix(l,
			"hammerlock/workload.(*worker)")
	}); at >= 0 {
		lines = lines[:at]
	}
	return lines[:min(len(lines), mostStack)]
}
