package workload

import (
	"context"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// Service is a counter behind the service under test. A visit is one request to it.
type Service interface {
	Counter
	// Visit counts one view of a page. It returns the count from the reply, or 0 if the reply contains none. If it
	// returns an error, the result count is the HTTP status of the reply, or 0 without a reply.
	Visit(ctx context.Context, worker int, key int32) (count int64, err error)
}

// Does tells whether a Counter supports this way of counting.
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

// request makes a visit to the service. It records a store without a hold: the service's lock is invisible to the
// suite.
func (w *worker) request(ctx context.Context, key int32) (history.Outcome, history.Reason) {
	op := w.call(history.Store, key)
	count, err := w.group.Counter.(Service).Visit(ctx, w.shape.First+w.number, key)
	op.Outcome, op.Reason = locks.Classify(err)
	if op.Value = count; err != nil && op.Reason != history.Canceled {
		w.said = Note(w.said, op.Class(), w.group.Secrets.Hide(err.Error()))
	}
	outcome, reason := op.Outcome, op.Reason
	w.unreached = reason == history.Unreachable
	w.now = w.lane.Return(op)
	return outcome, reason
}

// unreachedPause is the shortest pause of a closed-loop worker after the service accepted no connection. Without
// the pause, workers would use a whole CPU and fill the history.
const unreachedPause = 10 * time.Millisecond

// rest returns the worker's pause before its next visit of a closed loop.
func (w *worker) rest() time.Duration {
	if w.unreached {
		return max(w.think(), unreachedPause)
	}
	return w.think()
}
