package workload

import (
	"context"

	"hammerlock/history"
	"hammerlock/locks"
)

// mode draws the number of permits that a visit requests: 0 = exclusive. For a readers-writer lock, 1 means that the
// visit reads.
func (w *worker) mode() int {
	switch c := &w.group.Claims; {
	case c.Permits > 0:
		return 1 + w.rand.IntN(min(max(w.shape.Permits, 1), c.Permits))
	case c.Readers && w.rand.Float64() < w.shape.Readers:
		return 1
	}
	return 0
}

// countShared makes a visit under a shared lock. Holders of a semaphore count atomically, because several count
// together; a reader only reads.
func (w *worker) countShared(ctx context.Context, g *grant) (history.Outcome, history.Reason) {
	if w.group.Claims.Permits == 0 {
		return w.read(ctx, g)
	}
	if reason := w.remain(ctx, g); reason != history.None {
		return history.Failed, reason
	}
	return w.add(ctx, g)
}

// remain waits between load and store, and extends the lease as planned. A reason other than history.None means that
// the visit must end without a store.
func (w *worker) remain(ctx context.Context, g *grant) history.Reason {
	if w.shape.Varied {
		w.now = 0
		return w.varied(ctx, g)
	}
	// If visits are longer than the lease, half of the re-entries come before the first renewal. If the inner
	// release has wrongly ended the hold, this renewal fails.
	early := w.shape.Hold > w.shape.TTL && w.group.Claims.Reentrant && w.rand.IntN(2) == 0 &&
		w.clock.Now() < g.asked+w.ttl()/3
	if early && !w.reenter(w.during(ctx), g) {
		return history.Lost
	}
	w.now = 0
	for range max(w.shape.Extensions, 1) {
		if reason := w.stay(ctx, g); reason != history.None {
			return reason
		}
		if !w.extend(w.during(ctx), g, w.shape.Extend) {
			return history.Lost
		}
	}
	if !early && !w.reenter(w.during(ctx), g) || w.lost(g) || w.late(g) {
		return history.Lost
	}
	return history.None
}

// read makes the visit of a reader. It loads the page at the beginning and at the end, because no worker may store in
// between. Some readers upgrade to writer and store.
func (w *worker) read(ctx context.Context, g *grant) (history.Outcome, history.Reason) {
	seen, outcome, reason := w.load(ctx, g, &g.spot)
	if outcome != history.OK {
		return history.Failed, reason
	}
	if reason := w.remain(ctx, g); reason != history.None {
		return history.Failed, reason
	}
	if w.group.Claims.Upgrades && w.shape.Upgrade > 0 && w.rand.IntN(w.shape.Upgrade) == 0 {
		if reason := w.upgrade(w.during(ctx), g); reason != history.None {
			return history.Failed, reason
		}
		return w.store(g, &g.spot, seen, func(c Count) error { return w.group.Counter.Store(ctx, g.page.Views, c) })
	}
	if _, outcome, reason = w.load(ctx, g, &g.spot); outcome != history.OK {
		return history.Failed, reason
	}
	return history.OK, history.None
}

// upgrade makes a reader the writer, under a new hold. If the outcome is unknown, upgrade releases the new hold,
// which may exist; the visit's end releases the reader's hold.
func (w *worker) upgrade(ctx context.Context, g *grant) history.Reason {
	op := w.lane.Call(history.Acquire, g.key)
	w.enter()
	lease, err := w.lock.(locks.Upgrader).Upgrade(ctx, g.lease, w.ttl())
	w.leave()
	id := op.ID
	op.Hold, op.Seen = id, g.hold
	w.granted(op, &lease, err)
	outcome, reason := op.Outcome, op.Reason
	w.lane.Return(op)
	switch {
	case outcome == history.OK:
		g.hold, g.lease, g.permits = id, lease, 0
		if w.late(g) {
			return history.Lost
		}
		return history.None
	case reason == history.Lost:
		w.recordLost(g)
	case outcome == history.Unknown:
		lease = g.lease
		lease.Permits = 0
		w.release(g.key, id, &lease, 0)
		w.now = 0
	}
	return reason
}
