package workload

import (
	"context"
	"time"

	"hammerlock/history"
)

// A visit draws from these lists. The first list has the times at which it extends its lease, as shares of the
// lease. The second list has the lengths of the new lease, as multiples of the usual lease.
var (
	extendsAfter = []float64{0.1, 0.5, 0.9, 1.1}
	extendsTo    = []float64{0.5, 3}
)

// varied fills the time between load and store. It extends the lease early or late, to a longer or a shorter one,
// and then waits for 80 % of the last lease. If the outcome of an extension is unknown, so is the length of the
// lease, and the visit ends without a store.
func (w *worker) varied(ctx context.Context, g *grant) history.Reason {
	if !w.reenter(w.during(ctx), g) {
		return history.Lost
	}
	lease := w.ttl()
	for range max(w.shape.Extensions, 1) {
		share := extendsAfter[w.rand.IntN(len(extendsAfter))]
		if reason := w.stayFor(ctx, g, time.Duration(share*float64(lease))); reason != history.None {
			return reason
		}
		lease = time.Duration(extendsTo[w.rand.IntN(len(extendsTo))] * float64(w.ttl()))
		if !w.extend(w.during(ctx), g, lease) || g.unsure {
			return history.Lost
		}
	}
	if reason := w.stayFor(ctx, g, lease*4/5); reason != history.None {
		return reason
	}
	if w.lost(g) || w.late(g) {
		return history.Lost
	}
	return history.None
}

// stayFor waits for a given time, or until the lock reports the loss of the hold.
func (w *worker) stayFor(ctx context.Context, g *grant, hold time.Duration) history.Reason {
	if w.shape.StopAtEnd {
		hold = min(hold, max(w.shape.End-w.clock.Now(), 0))
	}
	if w.shape.HeedDeadline {
		w.back = w.clock.Now() + hold
	}
	if hold > 0 {
		w.timer.Reset(hold)
		select {
		case <-w.timer.C:
		case <-g.lease.Lost:
		case <-ctx.Done():
			return history.Canceled
		}
	}
	if !w.pass(ctx, Loaded, g.key, g.hold) {
		return history.Crashed
	}
	if w.lost(g) {
		return history.Lost
	}
	return history.None
}
