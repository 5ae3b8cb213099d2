package harness

import (
	"context"
	"sync"
	"time"

	"hammerlock/internal/deployment"
)

// beside begins what goes on beside the workers: taking in what they record, reading what the servers do for them,
// looking after them and for keys. The function that it returns ends all that, and says what the measurement cost the servers. A run
// that ended early is measured up to then.
func (x *execution) beside(ctx context.Context) (end func() deployment.Cost) {
	var all sync.WaitGroup
	var cost deployment.Cost
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
	return func() deployment.Cost {
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

// cost is what the servers do between the beginning and the end of the measurement.
func (x *execution) cost(ctx context.Context, done <-chan struct{}) deployment.Cost {
	wait := func(at time.Duration) {
		timer := time.NewTimer(at - x.session.Clock.Now())
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-done:
		}
	}
	from := x.combo.Plan.Warmup
	wait(from)
	before := x.deployment.Cost(ctx)
	wait(from + x.combo.Plan.Duration)
	return x.deployment.Cost(ctx).Since(before)
}
