package harness

import (
	"context"
	"sync"
	"time"

	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/internal/deployment"
)

// attend prepares the watch over this machine, the servers, and the keys of the locks. For a watched program it only
// prepares the watch over this machine.
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

// watchGap is the shortest pause that is recorded while a program is watched, perhaps for weeks. Shorter pauses would
// fill the history, and judges tolerate delays of this length anyway.
const watchGap = time.Second

// gap returns the shortest pause of this process that the heartbeat records.
func (x *Run) gap() time.Duration {
	if x.endless() {
		return watchGap
	}
	return crew.Gap(x.combo.Plan.Workload.TTL)
}

// background starts all activities beside the visits. They collect records, read the servers' counters, and watch
// servers and keys. For a watched program, they save each violation. Call end to stop them; it returns the work that
// the servers did. If the run ended early, end also ends the measurement, at the time of the call.
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
