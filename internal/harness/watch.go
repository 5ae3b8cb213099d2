package harness

import (
	"context"
	"sync"
	"time"

	"hammerlock/history"
	"hammerlock/results"
	"hammerlock/workload"
)

// How often the recorded operations are taken in, and how often somebody is told about it.
const (
	drainEvery = 20 * time.Millisecond
	tellEvery  = 250 * time.Millisecond
)

// watch observes a run from beside it: it takes in what the workers record and samples what the run costs.
type watch struct {
	stage *stage
	meter *results.Meter
	clock *history.Clock
	merge *history.Merge
	lanes []*history.Lane
	from  time.Duration
	to    time.Duration

	done    chan struct{}
	workers sync.WaitGroup
	wake    chan struct{}
	before  sample
	after   sample
}

// watch gives the crew its clock and lanes and begins to observe. The clock's zero is now.
func (s *stage) watch(ctx context.Context, crew *workload.Crew, folder *results.Folder) *watch {
	p := &s.job.Plan
	w := &watch{stage: s, from: p.Warmup, to: crew.Plan.End, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	w.meter = results.NewMeter(results.MeterOptions{
		Workers: crew.Plan.Workers, Keys: crew.Plan.Keys, From: w.from, To: w.to,
		Excludes: s.combo.Lock.Claims.Excludes, OpenLoop: crew.Plan.Open(), Interval: folder.Interval,
	})
	w.clock = history.NewClock(0)
	w.lanes = lanesFor(w.clock, crew.Plan.Workers, w.wake)
	w.merge = history.NewMerge(w.clock, w.lanes)
	crew.Clock, crew.Lanes = w.clock, w.lanes
	w.workers.Go(w.drain)
	w.workers.Go(func() { w.sample(ctx) })
	return w
}

// drain takes in operations until the run is over.
func (w *watch) drain() {
	ticker := time.NewTicker(drainEvery)
	defer ticker.Stop()
	told := time.Duration(0)
	for {
		select {
		case <-w.done:
			return
		case <-w.wake:
		case <-ticker.C:
		}
		w.merge.Drain(w.meter.Observe)
		if now := w.clock.Now(); now-told >= tellEvery {
			told = now
			w.stage.tell(Event{Phase: Running, Live: w.meter.Live(now)})
		}
	}
}

// sample reads the costs when the measurement begins and ends.
func (w *watch) sample(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	wait := func(at time.Duration) {
		timer := time.NewTimer(at - w.clock.Now())
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-w.done:
		}
	}
	wait(w.from)
	w.before = w.stage.sample(ctx, w.clock.Now())
	wait(w.to)
	w.after = w.stage.sample(ctx, w.clock.Now())
}

// finish waits for the rest of the operations and returns what the measurement cost. A run that ended early is
// measured up to then.
func (w *watch) finish() (results.Load, cost) {
	end := w.clock.Now()
	close(w.done)
	w.workers.Wait()
	w.meter.Cut(end)
	w.merge.Flush(w.meter.Observe)
	w.meter.Finish()
	load := w.after.load.since(w.before.load)
	load.OpenLoop = w.stage.job.Plan.Workload.Open()
	for _, l := range w.lanes {
		load.Stalls += int64(l.Stalls())
	}
	return load, w.after.cost.since(w.before.cost)
}

// sample reads the counters of servers, clients and this process.
func (s *stage) sample(ctx context.Context, now time.Duration) sample {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return sample{load: readLoad(now, s.clients), cost: s.readCost(ctx)}
}
