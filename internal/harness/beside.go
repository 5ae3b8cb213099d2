package harness

import (
	"context"
	"sync"
	"time"

	"hammerlock/internal/deployment"
	"hammerlock/internal/measure"
)

// beside begins what goes on beside the workers: taking in what they record, reading what the servers do for them,
// looking after them and for keys. The function that it returns ends all that, and says what the measurement cost the
// servers. A run that ended early is measured up to then.
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

// costs are what the servers did while the run was measured, and in each of its phases.
type costs struct {
	whole    deployment.Cost
	from, to time.Duration // of the whole, as it was read
	phases   []deployment.Cost
}

// reading is what the servers had done at a moment, and by how much later that is than it should be.
type reading struct {
	deployment.Cost
	at, late time.Duration
}

// costLate is by how much of a phase a reading of its costs may be late: a later one counts what is done for visits of
// the next phase.
const costLate = 0.1

// since is what the servers did in a time that began with another reading; unknown if a reading is too late for that.
func (r reading) since(before reading, lasted time.Duration) deployment.Cost {
	c := r.Cost.Since(before.Cost)
	c.Known = c.Known && float64(max(r.late, before.late)) <= costLate*float64(lasted)
	return c
}

// cost reads what the servers do, where a phase begins and ends.
func (x *Run) cost(ctx context.Context, done <-chan struct{}) (c costs) {
	read := func(at time.Duration) reading {
		select {
		case <-time.After(at - x.session.Clock.Now()):
		case <-done: // the run has ended before
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
