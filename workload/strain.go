package workload

import (
	"context"
	"math"
	"time"
)

// ttl is the lease that the worker asks for.
func (w *worker) ttl() time.Duration {
	if w.shape.Uneven && (w.shape.First+w.number)%2 == 1 {
		return 2 * w.shape.TTL
	}
	return w.shape.TTL
}

// hold draws how long a visit stays.
func (w *worker) hold() time.Duration {
	if w.shape.Spread == 0 {
		return w.shape.Hold
	}
	return time.Duration(float64(w.shape.Hold) * (1 + w.shape.Spread*(2*w.rand.Float64()-1)))
}

// during is the context of calls to the lock.
func (w *worker) during(ctx context.Context) context.Context {
	if w.calls != nil {
		return w.calls
	}
	return ctx
}

// moment draws when a visit is called off: before its first call, during one, or long after.
func (w *worker) moment() time.Duration {
	return time.Duration(float64(10*time.Microsecond) * math.Pow(1000, w.rand.Float64()))
}

// late tells whether a holder that heeds its deadline must not store any more: a store takes a while, so a tenth of a lease
// before the end is too late. Where leases are renewed the deadline is nobody's to know; but a holder knows that it was away.
func (w *worker) late(g *grant) bool {
	switch {
	case !w.shape.Heed:
		return false
	case g.lease.Lost != nil:
		return w.clock.Now() > w.back+w.ttl()/2
	}
	return !g.lease.Until.IsZero() && w.clock.Now() > w.until(&g.lease)-w.ttl()/10
}

// lost tells whether the lock has told that a hold is lost.
func (w *worker) lost(g *grant) bool {
	select {
	case <-g.lease.Lost:
		w.recordLost(g)
		return true
	default:
		return false
	}
}
