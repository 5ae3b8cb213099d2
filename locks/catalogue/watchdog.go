package catalogue

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

var watchdog = locks.Spec{
	Name: "watchdog",
	Doc: "lease, renewed in the background at a third of it; its holder gets a signal when the last " +
		"acknowledged renewal runs out",
	Source:  "Redisson, lock watchdog; redis.io, Distributed Locks with Redis: extending the lock",
	Sites:   locks.OneSite,
	Assumes: keepsKeys + heedsLost,
	Expect: []locks.Expectation{
		{Cause: history.ServiceLoss, Fault: "flush"},
	},
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Renews: true},
	Shared: true,
	Open:   func(e locks.Env) (locks.Lock, error) { return renew(&leaseLock{e.Sites[0]}, e), nil },
}

// A lease is renewed after a third of its TTL. After a failed renewal, the next one follows after a tenth of the
// TTL.
const (
	renewShare = 3
	againShare = 10
)

// renewing adds a watchdog to a lock: a goroutine that renews a lease in the background while it is held.
type renewing struct {
	locks.Lock
	lane     *history.Lane // may be nil
	trusting bool          // broken on purpose: only a reply "lost" ends a hold, even after the end of the lease

	mu    sync.Mutex // guards the map
	tasks map[string]*renewal
	turn  sync.Mutex // guards the lane, which records one operation after another
}

// renewal is the background task for one hold.
type renewal struct {
	lease locks.Lease // used by the task's goroutine only
	ttl   time.Duration
	again atomic.Pointer[time.Time] // end of the lease after the last re-entry; nil = no re-entry
	lost  chan struct{}
	stop  context.CancelFunc
	done  chan struct{}
}

func renew(l locks.Lock, e locks.Env) *renewing {
	return &renewing{Lock: l, lane: e.Renewals, tasks: map[string]*renewal{}}
}

func (r *renewing) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	lease, err := r.Lock.Acquire(ctx, key, ttl)
	if err != nil {
		return lease, err
	}
	r.mu.Lock()
	t, ok := r.tasks[lease.Token]
	if ok { // a re-entry has extended the lease and needs no task of its own
		until := lease.Until
		t.again.Store(&until)
	} else {
		t = r.start(ctx, lease, call, ttl)
		r.tasks[lease.Token] = t
	}
	r.mu.Unlock()
	lease.Lost = t.lost
	select {
	case <-t.lost: // the task has ended, and Lost has told the holder
		return lease, errors.Join(locks.ErrLost, r.Lock.Release(ctx, lease))
	default:
		return lease, nil
	}
}

func (r *renewing) task(lease locks.Lease) *renewal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tasks[lease.Token]
}

// start starts the renewal of a lease; call is the time at which the lease was requested.
func (r *renewing) start(ctx context.Context, lease locks.Lease, call time.Time, ttl time.Duration) *renewal {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	t := &renewal{lease: lease, ttl: ttl, lost: make(chan struct{}), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		r.run(ctx, t, call)
	}()
	return t
}

// run renews the lease until ctx is cancelled or the hold is lost.
func (r *renewing) run(ctx context.Context, t *renewal, call time.Time) {
	timer := time.NewTimer(time.Until(call.Add(t.ttl / renewShare)))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		call = time.Now()
		outcome, reason := history.Failed, history.Lost
		if call.Before(r.end(t)) {
			outcome, reason = r.once(ctx, t)
		}
		next := call.Add(t.ttl / renewShare)
		if outcome != history.OK {
			next = earlier(time.Now().Add(t.ttl/againShare), r.end(t))
		}
		if reason == history.Lost {
			if ctx.Err() == nil {
				close(t.lost)
			}
			return
		}
		timer.Reset(time.Until(next))
	}
}

// end returns the time at which the holder gives the hold up, unless a renewal succeeds before.
func (r *renewing) end(t *renewal) time.Time {
	if r.trusting {
		return time.Now().Add(t.ttl)
	}
	if again := t.again.Load(); again != nil && again.After(t.lease.Until) {
		return *again
	}
	return t.lease.Until
}

// once makes one renewal and records it. Its request is cancelled after a third of the TTL, or when the lease ends.
func (r *renewing) once(ctx context.Context, t *renewal) (history.Outcome, history.Reason) {
	ctx, cancel := context.WithDeadline(ctx, earlier(time.Now().Add(t.ttl/renewShare), r.end(t)))
	defer cancel()
	r.turn.Lock()
	defer r.turn.Unlock()
	var op *history.Op
	if r.lane != nil {
		op = r.lane.Call(history.Extend, -1)
	}
	before := t.lease.Until
	var err error
	t.lease, err = r.Lock.Extend(ctx, t.lease, t.ttl)
	outcome, reason := locks.Classify(err)
	if op != nil {
		op.Token, op.TTL, op.Outcome, op.Reason = history.Hash(t.lease.Token), t.ttl, outcome, reason
		switch {
		case t.lease.Until.IsZero():
			op.Until = history.Forever
		case t.lease.Until.After(before):
			op.Until = r.lane.Clock().At(t.lease.Until)
		}
		r.lane.Return(op)
	}
	return outcome, reason
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Release stops the renewals before it releases the lock, so that no renewal comes later.
func (r *renewing) Release(ctx context.Context, lease locks.Lease) error {
	if lease.Count <= 1 {
		r.mu.Lock()
		t, ok := r.tasks[lease.Token]
		delete(r.tasks, lease.Token)
		r.mu.Unlock()
		if ok {
			t.end()
		}
	}
	return r.Lock.Release(ctx, lease)
}

func (t *renewal) end() {
	t.stop()
	<-t.done
}

func (r *renewing) Close() error {
	for _, t := range r.tasks {
		t.end()
	}
	clear(r.tasks)
	return r.Lock.Close()
}
