package harness

import (
	"context"
	"sync"
	"time"

	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/internal/deployment"
)

// attend prepares to watch the machine, the servers and the workers' keys. For a watched program, only the traffic of
// the servers is known.
func (x *Run) attend() {
	lane := func() *history.Lane { return x.record.Lane(ownSlots) }
	plan := &x.combo.Plan
	beats, apart := lane(), plan.Fleet.judged(plan.Processes) > 1 || x.deployment.Program != nil
	x.heart = crew.NewHeartbeat(beats, x.gap(), apart, x.record.Note)
	if x.deployment.Program != nil {
		return
	}
	x.own, x.keys = lane(), lane()
	x.watch = x.deployment.Watch(deployment.WatchOptions{Lane: lane, Note: x.record.Note, Heart: x.heart,
		TTL:     plan.Workload.TTL,
		Closely: len(x.combo.Steps) > 0 && x.combo.Scenario.Name == ""})
}

// watchGap is the shortest recorded pause while a program is watched for weeks. Shorter pauses would be too many, and a
// judge allows a busy machine delays of this length in any case.
const watchGap = time.Second

// gap returns the shortest pause of this process that is recorded.
func (x *Run) gap() time.Duration {
	if x.endless() {
		return watchGap
	}
	return crew.Gap(x.combo.Plan.Workload.TTL)
}

// background starts the activities beside the visits. They collect records, read the servers' counters, and watch
// servers and keys; for a watched program, they cut out violations. The returned function ends them, and returns the
// servers' costs. A run that ended early is measured up to its end.
func (x *Run) background(ctx context.Context) (end func() costs) {
	var all sync.WaitGroup
	var cost costs
	done := make(chan struct{})
	ctx = context.WithoutCancel(ctx)
	x.record.Start()
	all.Go(func() { x.heart.Run(done) })
	if x.deployment.Program != nil {
		all.Go(func() { x.cutting(done) })
	} else {
		all.Go(func() { cost = x.cost(ctx, done) })
		all.Go(func() { x.watch.Run(ctx, done) })
	}
	if x.keys != nil && x.combo.Plan.Verify {
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
		if x.watch != nil {
			x.incidents = x.watch.Close()
		}
		x.meter.Cut(at)
		x.stalls = x.record.Flush()
		x.meter.Finish()
		return cost
	}
}
