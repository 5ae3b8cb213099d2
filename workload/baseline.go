package workload

import (
	"context"
	"errors"

	"hammerlock/history"
	"hammerlock/locks"
)

// increment adds a page view by one atomic operation of the counter, without a lock. Before that, it waits as long
// as a holder of a lock would.
func (w *worker) increment(ctx context.Context, g *grant) (history.Outcome, history.Reason) {
	if reason := w.stay(ctx, g); reason != history.None {
		return history.Failed, reason
	}
	return w.add(ctx, g)
}

// add adds a page view by one atomic operation, and records the count that was replaced. Without a reply, that
// count is unknown.
func (w *worker) add(ctx context.Context, g *grant) (history.Outcome, history.Reason) {
	op := w.lane.Call(history.Store, g.key)
	op.Hold = g.hold
	seen, err := w.group.Counter.(Adder).Add(ctx, g.page.Views, op.ID)
	outcome, reason := locks.Classify(err)
	if outcome == history.OK {
		op.Value, op.Seen = seen.Views+1, seen.Writer
	}
	op.Outcome, op.Reason = outcome, reason
	w.now = w.lane.Return(op)
	return outcome, reason
}

// optimistic makes a load and then a store, which fails if another worker has stored in between. It repeats both until
// the store succeeds or the visit's patience ends.
func (w *worker) optimistic(ctx context.Context, g *grant) (history.Outcome, history.Reason) {
	for {
		outcome, reason := w.transact(ctx, g)
		if reason != history.Conflict {
			return outcome, reason
		}
		left := w.lane.Due + w.patience() - w.clock.Now()
		if ctx.Err() != nil {
			return history.Failed, history.Canceled
		}
		if left <= 0 {
			return history.Failed, history.Impatient
		}
		w.sleep(ctx, min(left, w.backoff()))
	}
}

// transact makes one load and one store for the function optimistic. The reason history.Conflict means that another
// worker has stored in between.
func (w *worker) transact(ctx context.Context, g *grant) (outcome history.Outcome, reason history.Reason) {
	load := w.lane.Call(history.Load, g.key)
	load.Hold = g.hold
	loaded := false
	err := w.group.Counter.(Atomic).Transact(ctx, g.page.Views, func(seen Count, store func(Count) error) error {
		loaded = true
		load.Value, load.Seen, load.Outcome = seen.Views, seen.Writer, history.OK
		w.lane.Return(load)
		if reason = w.stay(ctx, g); reason != history.None {
			outcome = history.Failed
			return errLeft
		}
		outcome, reason = w.store(g, &g.spot, seen, store)
		return nil
	})
	w.now = 0 // the transaction sends more commands after the store, so the last reading of the clock is too old
	if loaded {
		return outcome, reason
	}
	load.Outcome, load.Reason = locks.Classify(err)
	reason = load.Reason
	w.lane.Return(load)
	return history.Failed, reason // the load failed, and a load changes nothing
}

// errLeft makes Transact end without a store.
var errLeft = errors.New("the visit ended before its store")
