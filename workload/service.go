package workload

import (
	"context"

	"hammerlock/history"
	"hammerlock/locks"
)

// Service is a counter behind its own lock: a visit is one request to it.
type Service interface {
	Counter
	// Visit counts one view of a page and returns the count in the answer, 0 if the answer has none.
	Visit(ctx context.Context, worker int, key int32) (count int64, err error)
}

// Does tells whether a counter supports a way of counting.
func Does(c Counter, how locks.Counting) (ok bool) {
	switch how {
	case locks.TwoSteps:
		return true
	case locks.Elsewhere:
		_, ok = c.(Service)
	default:
		_, ok = c.(Atomic)
	}
	return ok
}

// request is a visit to a service. Its store belongs to no hold, since the lock is not visible.
func (w *worker) request(ctx context.Context, key int32) (history.Outcome, history.Reason) {
	op := w.call(history.Store, key)
	count, err := w.group.Counter.(Service).Visit(ctx, w.shape.First+w.number, key)
	op.Outcome, op.Reason = locks.Classify(err)
	if op.Outcome == history.OK {
		op.Value = count
	}
	outcome, reason := op.Outcome, op.Reason
	w.now = w.lane.Return(op)
	return outcome, reason
}
