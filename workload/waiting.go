package workload

import (
	"context"
	"errors"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

var ErrCalledOff = errors.New("the wait was called off")

// await waits before the next try, until the lock signals or the backoff has passed. The result woken says which of
// the two ended the wait. When the visit's patience ends, await cancels the lock's wait, and the lock leaves its
// queue. Then over is true: the visit must not try again, because it would be last in the queue.
func (w *worker) await(ctx context.Context, name string, left time.Duration) (woken history.Wake, over bool) {
	waiter, ok := w.lock.(locks.Waiter)
	if !ok {
		w.sleep(ctx, min(left, w.backoff()))
		return history.Poll, false
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	w.enter()
	wake, err := waiter.Wait(ctx, name)
	w.leave()
	if errors.Is(err, ErrCalledOff) {
		return wake, true
	}
	if err != nil && ctx.Err() == nil {
		w.sleep(ctx, min(left, w.backoff())) // the lock cannot wait now
		return history.Poll, false
	}
	return wake, err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded)
}

// handed records a grant that the lock received while its worker waited inside the lock. The time of the grant is
// later than w.now, which is the time of the last refusal. It returns false if there was no such grant.
func (w *worker) handed(g *grant, woken history.Wake) bool {
	q, ok := w.lock.(locks.Queue)
	if !ok {
		return false
	}
	lease, since, ok := q.Handed(g.page.Lock)
	if !ok {
		return false
	}
	granted := w.clock.At(since)
	op := history.Op{Kind: history.Acquire, Key: g.key, Hold: w.lane.Next(), Woken: woken, Call: max(granted, w.now+1)}
	lease.Spent += op.Call - granted
	w.granted(&op, &lease, nil)
	g.lease, g.hold = lease, op.Hold
	w.now = w.lane.Mark(&op)
	return true
}

// try calls Acquire. If Acquire waits inside the lock, it may do so until the visit's patience ends.
func (w *worker) try(ctx context.Context, g *grant, called time.Duration) (locks.Lease, error) {
	w.enter()
	lease, err := w.ask(ctx, g, called)
	w.leave()
	return lease, err
}

func (w *worker) ask(ctx context.Context, g *grant, called time.Duration) (locks.Lease, error) {
	name := g.page.Lock
	if w.group.Claims.Sets {
		return w.askAll(ctx, g, called)
	}
	left := max(w.lane.Due+w.patience()-called, 0)
	if p, ok := w.lock.(locks.PatientSharer); ok && g.permits > 0 {
		return p.AcquireShareWithin(ctx, name, w.ttl(), g.permits, left)
	}
	if g.permits > 0 {
		return w.lock.(locks.Sharer).AcquireShare(ctx, name, w.ttl(), g.permits)
	}
	if p, ok := w.lock.(locks.Patient); ok {
		return p.AcquireWithin(ctx, name, w.ttl(), left)
	}
	return w.lock.Acquire(ctx, name, w.ttl())
}

// waited splits the record of an Acquire that has waited inside the lock into two operations: a refused one, and
// then a granted one. So the record shows that the lease began during the second operation, which waited returns.
func (w *worker) waited(g *grant, op *history.Op, again time.Duration) *history.Op {
	again = min(again, w.clock.Now()) - 1
	split := func(lane *history.Lane, op *history.Op) *history.Op {
		op.Hold, op.Outcome, op.Reason, op.TTL = op.ID, history.Failed, history.Busy, w.ttl()
		return lane.Split(op, max(op.Call, again))
	}
	for i := range g.more {
		s := &g.more[i]
		s.op = split(s.lane, s.op)
	}
	return split(w.lane, op)
}

// giveUp makes the lock leave its queue: it calls Wait with a context that is already cancelled.
func (w *worker) giveUp(name string) {
	waiter, ok := w.lock.(locks.Waiter)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(w.cleanup)
	cancel()
	w.enter()
	_, _ = waiter.Wait(ctx, name) // the error is that of the cancelled context
	w.leave()
}

// extend extends the lease, so that it ends a given time from now. If that time is 0, it does nothing. It returns
// whether the hold is still valid.
func (w *worker) extend(ctx context.Context, g *grant, to time.Duration) bool {
	if to == 0 {
		return true
	}
	op := w.lane.Call(history.Extend, g.key)
	op.Hold = g.hold
	g.open(history.Extend)
	w.enter()
	lease, err := w.lock.Extend(ctx, g.lease, to)
	w.leave()
	op.Token, op.TTL = w.token(&lease), to
	outcome, reason := w.answeredAll(history.Extend, err)
	if op.Outcome, op.Reason = outcome, reason; outcome == history.OK {
		op.Until = w.until(&lease)
		g.lease = lease
	}
	g.unsure = outcome == history.Unknown
	g.close(op)
	w.lane.Return(op)
	return reason != history.Lost || w.recordLost(g)
}

// recordLost records that the holder has learned of the loss of its hold. It always returns false: the hold is not
// valid.
func (w *worker) recordLost(g *grant) bool {
	lose := history.Op{Kind: history.Lose, Key: g.key, Hold: g.hold, Call: w.clock.Stamp(), Outcome: history.OK}
	g.mark(lose)
	w.lane.Mark(&lose)
	return false
}

// reenter acquires a reentrant lock again and releases it, as nested functions do. It returns whether the hold is
// still valid.
func (w *worker) reenter(ctx context.Context, g *grant) bool {
	if !w.group.Claims.Reentrant || w.group.Claims.Sets || w.rand.IntN(max(w.shape.Reenter, 1)) > 0 {
		return true
	}
	times := 1
	if w.shape.Reentries > 1 {
		times += w.rand.IntN(w.shape.Reentries)
	}
	for range times {
		if !w.inner(ctx, g) {
			return false
		}
	}
	return true
}

func (w *worker) inner(ctx context.Context, g *grant) bool {
	op := w.lane.Call(history.Acquire, g.key)
	op.Hold = g.hold
	w.enter()
	lease, err := w.lock.Acquire(ctx, g.page.Lock, w.ttl())
	w.leave()
	op.Value = lease.Count
	w.granted(op, &lease, err)
	outcome, gone := op.Outcome, op.Reason == history.Lost || op.Reason == history.Busy
	w.lane.Return(op)
	switch outcome {
	case history.Unknown:
		return true // the inner hold may exist; it ends with the lease
	case history.Failed:
		return !gone || w.recordLost(g) // a refusal says nothing about the outer hold
	}
	w.release(g.key, g.hold, &lease, lease.Count-1)
	return true
}

// granted records the result of an Acquire.
func (w *worker) granted(op *history.Op, lease *locks.Lease, err error) {
	op.Outcome, op.Reason = w.answered(history.Acquire, err)
	if op.Outcome == history.OK {
		op.Until = w.until(lease)
	}
	if op.Reason == history.Quorum {
		op.Value = int64(locks.Silent(err))
	}
	if !w.group.Judged {
		return
	}
	op.TTL, op.Token = max(w.ttl()-lease.Spent, 1), w.token(lease) // a TTL of 0 would mean that the lease has no end
	if op.Outcome == history.OK {
		op.Fence, op.Value = lease.Fence, lease.Count
	}
}

// backoff draws the time until the next try at random, so that waiters do not try at the same moment.
func (w *worker) backoff() time.Duration {
	return time.Duration((0.5 + w.rand.Float64()) * float64(w.shape.Retry))
}

// sleep waits for the time d. It returns false if ctx ended first.
func (w *worker) sleep(ctx context.Context, d time.Duration) bool {
	w.timer.Reset(d)
	select {
	case <-w.timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
