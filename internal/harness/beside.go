package harness

import (
	"context"
	"sync"
	"time"

	"hammerlock/internal/deployment"
	"hammerlock/internal/measure"
)

// beside begins what goes on beside the workers: taking in what they record, reading what the servers do for them,
// looking after them and for keys. The function that it returns ends all that, and says what the measurement cost the servers. A run
// that ended early is measured up to then.
func (x *execution) beside(ctx context.Context) (end func() costs) {
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
	if x.picture != nil {
		all.Go(func() { x.picture.survey(ctx, done) })
	}
	return func() costs {
		at := x.session.Clock.Now()
		close(done)
		all.Wait()
		x.record.Stop()
		x.ailed = x.watch.Close()
		x.meter.Cut(at)
		x.stalls = x.record.Flush()
		x.meter.Finish()
		return cost
	}
}

// costs are what the servers did while the run was measured, and in each of its phases.
type costs struct {
	whole  deployment.Cost
	phases []deployment.Cost
}

// cost reads what the servers do, where a phase begins and ends.
func (x *execution) cost(ctx context.Context, done <-chan struct{}) (c costs) {
	wait := func(at time.Duration) {
		timer := time.NewTimer(at - x.session.Clock.Now())
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-done:
		}
	}
	p := &x.combo.Plan
	spans := p.spans()
	if spans == nil {
		spans = []measure.Span{{From: p.Warmup, To: p.Warmup + p.Duration}}
	}
	wait(spans[0].From)
	last := x.deployment.Cost(ctx)
	begin := last
	for _, s := range spans {
		if s.From == p.Warmup {
			begin = last
		}
		wait(s.To)
		now := x.deployment.Cost(ctx)
		c.phases, last = append(c.phases, now.Since(last)), now
	}
	c.whole = last.Since(begin)
	return c
}
