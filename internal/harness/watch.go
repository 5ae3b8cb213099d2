package harness

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"hammerlock/history"
	"hammerlock/internal/measure"
	"hammerlock/results"
)

// ownSlots is the room of the suite's own lane.
const ownSlots = 1 << 10

// How often the servers are looked into, for how many pages and for how long at most.
const (
	lookEvery   = 100 * time.Millisecond
	lookPages   = 4
	lookTimeout = 50 * time.Millisecond
)

// How often the recorded operations are taken in, and how often somebody is told about it.
const (
	drainEvery = 20 * time.Millisecond
	tellEvery  = 250 * time.Millisecond
)

// watch observes a run from beside it: it takes in what the workers record and samples what the run costs.
type watch struct {
	stage *stage
	meter *measure.Meter
	clock *history.Clock
	merge *history.Merge
	lanes []*history.Lane
	from  time.Duration
	to    time.Duration

	tape    *tape // nil if nothing is kept
	breaker *breaker
	own     *history.Lane // of the suite itself
	sights  *history.Lane // of locks' keys that are seen in the servers
	public  *public       // nil if nobody watches

	done    chan struct{}
	workers sync.WaitGroup
	wake    chan struct{}
	before  cost
	after   cost
}

// watch starts the run's clock and begins to observe.
func (s *stage) watch(ctx context.Context, run *results.Run, folder *results.Folder) (*watch, error) {
	p := &s.job.Plan
	w := &watch{
		stage: s, from: p.Warmup, to: p.Warmup + p.Duration, done: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	w.meter = measure.NewMeter(measure.Options{
		Workers: p.Workload.Workers, Keys: p.Workload.Keys, From: w.from, To: w.to,
		Excludes: s.combo.Lock.Claims.Excludes, OpenLoop: p.Workload.Open(), Log: folder.Log(), Started: run.Started,
	})
	header := s.header(run, s.crew.Slack())
	if p.Verify {
		var err error
		if w.tape, err = newTape(folder.Path(results.HistoryFile), header); err != nil {
			return nil, err
		}
	}
	if err := s.crew.Begin(w.wake); err != nil {
		return nil, errors.Join(err, w.tape.close(err.Error()))
	}
	w.clock = s.crew.Clock()
	lanes := s.crew.Lanes()
	w.own = history.NewLane(w.clock, len(lanes), -1, ownSlots, w.wake)
	w.sights = history.NewLane(w.clock, len(lanes)+1, -1, ownSlots, w.wake)
	if s.job.Watched {
		w.public = s.public(w, header)
	}
	w.breaker = s.breaker(w.clock, len(lanes)+2, w.wake, w.note)
	if w.public != nil {
		w.breaker.stops = w.public.viewer.Stop
	}
	w.lanes = slices.Concat(lanes, []*history.Lane{w.own, w.sights}, w.breaker.lanes)
	w.merge = history.NewMerge(w.clock, w.lanes)
	w.merge.Slack = s.crew.Slack()
	w.workers.Go(w.drain)
	w.workers.Go(func() { w.sample(ctx) })
	if p.Verify {
		w.workers.Go(func() { w.look(ctx) })
	}
	if w.public != nil {
		w.workers.Go(func() { w.public.look(ctx, w.done) })
	}
	return w, nil
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
		w.bury()
		final := w.merge.Drain(w.observe)
		w.tape.flush(w.clock.Now())
		if now := w.clock.Now(); now-told >= tellEvery {
			told = now
			w.stage.tell(w.event(now, final))
		}
	}
}

// bury lets the history go on without processes that are dead: their open calls would hold it back until the end.
func (w *watch) bury() {
	for _, p := range w.stage.crew.Processes() {
		if p.Dead() {
			for _, lane := range p.Lanes {
				w.merge.Abandon(lane)
			}
		}
	}
}

func (w *watch) observe(op *history.Op) {
	w.meter.Observe(op)
	if w.public != nil {
		w.public.viewer.Observe(op)
	}
	if w.tape != nil {
		w.tape.add(op)
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
	w.before = w.stage.sample(ctx)
	wait(w.to)
	w.after = w.stage.sample(ctx)
}

// look looks into the servers now and then, past all links: a lock that was reported as refused must not be there.
func (w *watch) look(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-w.done:
			return
		case <-ticker.C:
		}
		for i, n := range w.stage.topology.Nodes {
			w.stage.sight(ctx, w.sights, i, n)
		}
	}
}

// finish waits for the rest of the operations and returns what the measurement cost. A run that ended early is
// measured up to then.
func (w *watch) finish() cost {
	end := w.clock.Now()
	close(w.done)
	w.workers.Wait()
	w.meter.Cut(end)
	w.merge.Flush(w.observe)
	w.meter.Finish()
	return w.after.since(w.before)
}

// sample reads the servers' counters.
func (s *stage) sample(ctx context.Context) cost {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return s.readCost(ctx)
}
