package harness

import (
	"context"
	"sync"
	"time"

	"hammerlock/internal/deployment"
	"hammerlock/internal/measure"
)

// beside starts everything that goes on during a run besides the workers: collecting records, reading the servers'
// counters, watching servers and keys. The returned function ends it and returns the servers' work during the
// measurement. If the run ended early, that is measured up to its end.
func (x *Run) beside(ctx context.Context) (end func() costs) {
	var all sync.WaitGroup
	var cost costs
	done := make(chan struct{})
	ctx = context.WithoutCancel(ctx)
	x.record.Start()
	all.Go(func() { cost = x.cost(ctx, done) })
	all.Go(func() { x.heart.Run(done) })
	all.Go(func() { x.watch.Run(ctx, done) })
	if x.combo.Plan.Verify {
		all.Go(func() { x.deployment.WatchKeys(ctx, done, x.keys) })
	}
	if x.stream != nil {
		all.Go(func() { x.deployment.Tap(ctx, done, x.session.Clock, x.stream) })
	}
	if x.picture != nil {
		all.Go(func() { x.picture.survey(ctx, done) })
	}
	return func() costs {
		at := x.session.Clock.Now()
		close(done)
		all.Wait()
		x.record.Stop()
		x.incidents = x.watch.Close()
		x.meter.Cut(at)
		x.stalls = x.record.Flush()
		x.meter.Finish()
		return cost
	}
}

// costs is the work of the servers during the measurement, and in each of its phases.
type costs struct {
	whole    deployment.Cost
	from, to time.Duration // times of the first and the last reading
	phases   []deployment.Cost
}

// reading is the servers' counters at a moment, with the delay of the reading.
type reading struct {
	deployment.Cost
	at, late time.Duration
}

// costLate is how late the counters may be read at the end of a phase, as a share of its length: after that they would
// include visits of the next phase.
const costLate = 0.1

// since returns the servers' work between two readings; unknown if one of them was too late for a phase of that length.
func (r reading) since(before reading, lasted time.Duration) deployment.Cost {
	c := r.Cost.Since(before.Cost)
	c.Known = c.Known && float64(max(r.late, before.late)) <= costLate*float64(lasted)
	return c
}

// cost reads the servers' counters at the beginning and the end of each phase.
func (x *Run) cost(ctx context.Context, done <-chan struct{}) (c costs) {
	read := func(at time.Duration) reading {
		select {
		case <-time.After(at - x.session.Clock.Now()):
		case <-done: // the run has ended early
			at = x.session.Clock.Now()
		}
		asked := x.session.Clock.Now()
		cost := x.deployment.Cost(ctx)
		answered := x.session.Clock.Now()
		return reading{cost, (asked + answered) / 2, answered - at}
	}
	p := &x.combo.Plan
	spans := p.spans()
	if spans == nil {
		spans = []measure.Span{{From: p.Warmup, To: p.Warmup + p.Duration}}
	}
	last := read(spans[0].From)
	begin := last
	for _, s := range spans {
		if s.From == p.Warmup {
			begin = last
		}
		now := read(s.To)
		c.phases, last = append(c.phases, now.since(last, s.To-s.From)), now
	}
	c.whole, c.from, c.to = last.Since(begin.Cost), begin.at, last.at // no phase follows
	return c
}
