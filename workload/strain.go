package workload

import (
	"context"
	"math"
	"time"

	"hammerlock/history"
)

// ttl is the lease that the worker requests.
func (w *worker) ttl() time.Duration { return w.scale() * w.shape.TTL }

// scale is a factor for the worker's leases and the length of its visits.
func (w *worker) scale() time.Duration {
	if w.shape.TwoTTLs && (w.shape.First+w.number)%2 == 1 {
		return 2
	}
	return 1
}

// patience is how long after its due time a visit gives up.
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

// spread draws a time from a range around its mean.
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

// twoSteps counts by load and store: once, or repeatedly if a visit lasts for a term. The visit is a success if at
// least one of them was.
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

// during returns the context for the lock calls of a visit, which may be cancelled at a random moment.
func (w *worker) during(ctx context.Context) context.Context {
	if w.calls != nil {
		return w.calls
	}
	return ctx
}

// moment draws when a visit is cancelled: before its first call, during a call, or long after.
func (w *worker) moment() time.Duration {
	return time.Duration(float64(10*time.Microsecond) * math.Pow(1000, w.rand.Float64()))
}

// late tells whether a holder that heeds its deadline must not store any more. A store takes some time, so the last
// tenth of the lease is too late. With a renewed lease the holder does not know the deadline, but notices if it was
// paused for too long.
func (w *worker) late(g *grant) bool {
	switch {
	case !w.shape.HeedDeadline:
		return false
	case g.lease.Lost != nil:
		return w.clock.Now() > w.back+w.ttl()/2
	}
	return !g.lease.Until.IsZero() && w.clock.Now() > w.until(&g.lease)-w.ttl()/10
}

// lost tells whether the lock has reported that this hold was lost.
func (w *worker) lost(g *grant) bool {
	select {
	case <-g.lease.Lost:
		w.recordLost(g)
		return true
	default:
		return false
	}
}
