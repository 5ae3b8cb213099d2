package workload

import (
	"context"
	"math"
	"time"

	"hammerlock/history"
)

func (w *worker) ttl() time.Duration { return w.scale() * w.shape.TTL }

// scale is the factor for the worker's leases and the length of its visits: 2 for every second worker if TwoTTLs is
// set.
func (w *worker) scale() time.Duration {
	if w.shape.TwoTTLs && (w.shape.First+w.number)%2 == 1 {
		return 2
	}
	return 1
}

// patience is the time after its due time at which a visit gives up.
func (w *worker) patience() time.Duration {
	if w.hurries() {
		return w.shape.Hurry
	}
	return w.shape.Wait
}

// think draws the pause of a worker before its next visit.
func (w *worker) think() time.Duration {
	if w.hurries() {
		return w.shape.Think
	}
	return w.shape.Think + w.shape.Hurry/2
}

func (w *worker) hurries() bool { return w.shape.Hurry > 0 && (w.shape.First+w.number)%2 == 1 }

// spread draws a time at random from a range around the mean: see Shape.Spread.
func (w *worker) spread(mean time.Duration) time.Duration {
	if w.shape.Spread == 0 {
		return mean
	}
	return time.Duration(float64(mean) * (1 + w.shape.Spread*(2*w.rand.Float64()-1)))
}

// page draws the page for a visit of a closed loop.
func (w *worker) page() int32 {
	if w.shape.Faithful {
		return int32((w.shape.First + w.number) % w.shape.Keys)
	}
	return w.keys.choose()
}

// twoSteps counts by load and store: once, or repeatedly if the visit lasts for a term. The visit succeeds if at
// least one store did.
func (w *worker) twoSteps(ctx context.Context, g *grant) (history.Outcome, history.Reason) {
	outcome, reason := w.once(ctx, g)
	if w.shape.Term == 0 {
		return outcome, reason
	}
	over := g.at + w.spread(w.shape.Term)
	if w.shape.StopAtEnd {
		over = min(over, w.shape.End)
	}
	for outcome == history.OK && w.clock.Now() < over {
		if outcome, reason = w.once(ctx, g); outcome == history.Failed && reason != history.Crashed {
			return history.OK, history.None
		}
	}
	return outcome, reason
}

// during returns the context for the lock calls of a visit. In some visits it is cancelled at a random moment.
func (w *worker) during(ctx context.Context) context.Context {
	if w.calls != nil {
		return w.calls
	}
	return ctx
}

// moment draws the time after which a visit is cancelled: 10 µs to 10 ms. So the cancellation comes before, during
// or long after a lock call.
func (w *worker) moment() time.Duration {
	return time.Duration(float64(10*time.Microsecond) * math.Pow(1000, w.rand.Float64()))
}

// late tells whether a holder that obeys its deadline must not store any more. A store takes time, so late is true
// from 90 % of the lease on. If the lock renews its leases, the holder knows no deadline. Then late is true if the
// holder's wait lasted more than half a lease longer than planned, because it was paused.
func (w *worker) late(g *grant) bool {
	switch {
	case !w.shape.HeedDeadline:
		return false
	case g.lease.Lost != nil:
		return w.clock.Now() > w.back+w.ttl()/2
	}
	return !g.lease.Until.IsZero() && w.clock.Now() > w.until(&g.lease)-w.ttl()/10
}

// lost tells whether the lock has reported the loss of this hold, and records that loss.
func (w *worker) lost(g *grant) bool {
	select {
	case <-g.lease.Lost:
		w.recordLost(g)
		return true
	default:
		return false
	}
}
