package workload

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// worker makes one visit after another in one goroutine.
type worker struct {
	group    *Workers
	shape    *Shape
	arrivals *arrivals
	lane     *history.Lane
	clock    *history.Clock
	lock     locks.Lock
	number   int           // number of the worker in this process, from 0
	apart    time.Duration // see tick
	rand     *rand.Rand
	keys     *chooser
	timer    *time.Timer
	// now is the last reading of the clock, kept because readings are expensive. It is 0 if it is too old: the
	// worker has sent a command or waited since.
	now   time.Duration
	free  time.Duration // first time at which the visit was due and the worker was free
	began time.Duration // when the visit began
	grant grant         // of the visit
	// if no checker reads the history: the record of the store, which is written together with the end of the
	// visit; nil = no such record
	stored  *history.Op
	cleanup context.Context // context for releases, which is valid even after the run was cancelled
	callOff func()          // cancels the contexts of all lock calls, cleanup included
	back    time.Duration   // planned end of the time between load and store, for a holder that heeds its deadline
	calls   context.Context // context of a visit whose calls are cancelled at a random moment; nil for other visits

	unreached bool // the service took no connection for the last visit
	begun     int64
	skipped   int64
	err       error // why the worker could not be replaced when it died
	said      map[string]string

	turn      atomic.Uint64 // see enter
	goroutine string        // heading of its goroutine's stack trace
	panicked  history.Breakdown
}

func (w *worker) run(ctx, stop context.Context) {
	next := w.closed
	switch {
	case w.shape.Open():
		next = w.open
	case w.shape.Tick > 0:
		next = w.tick
	default:
		w.keys = newChooser(w.shape, w.rand)
	}
	w.now = w.clock.Now()
	for {
		w.free = w.now
		due, key, ok := next(stop)
		if !ok {
			return
		}
		w.free, w.lane.Due = max(due, w.free), due
		w.began = w.now
		if w.now-due > w.patience() {
			w.skipped++
			w.end(history.Skip, key, history.Failed, history.Impatient)
			continue
		}
		w.begun++
		if outcome, reason, told := w.visit(ctx, key); !told {
			w.endMore(outcome, reason)
			w.end(history.End, key, outcome, reason)
		}
		if w.err != nil {
			return
		}
	}
}

// end adds the end of a visit, with its outcome, to the history.
func (w *worker) end(kind history.Kind, key int32, outcome history.Outcome, reason history.Reason) {
	w.now = w.lane.Mark(&history.Op{Kind: kind, Key: key, Call: w.began, Until: w.free, Outcome: outcome,
		Reason: reason})
}

// closed waits for the worker's pause between two visits of a closed loop and returns the next visit.
func (w *worker) closed(stop context.Context) (due time.Duration, key int32, ok bool) {
	if w.shape.Visits > 0 && w.begun == int64(w.shape.Visits) {
		return 0, 0, false
	}
	if think := w.rest(); think > 0 {
		if !w.sleep(stop, think) {
			return 0, 0, false
		}
		w.now = w.clock.Now()
	}
	ok = w.takesPart(stop)
	return w.now, w.page(), ok && w.now < w.shape.End
}

// rough is the largest delay of a Go timer on an idle machine: the runtime waits for whole milliseconds.
const rough = 1200 * time.Microsecond

// open takes the next visit of an open loop's schedule and waits until it is due. The due time may change during the
// wait.
func (w *worker) open(stop context.Context) (due time.Duration, key int32, ok bool) {
	if stop.Err() != nil || w.now >= w.shape.End {
		return 0, 0, false
	}
	v, ok := w.arrivals.take()
	if !ok {
		return 0, 0, false
	}
	for napped := false; stop.Err() == nil; {
		changed := w.arrivals.change() // fetched before the due time is computed, so that no change is missed
		due = w.arrivals.tempo.due(v.planned)
		w.now = w.clock.Now()
		early := min(due, w.shape.End) - w.now
		if early <= 0 && due < w.shape.End {
			return due, v.key, true
		}
		if early <= 0 {
			break
		}
		if early <= rough && !napped { // only once: under a fake clock, nap does not advance the time
			nap(early)
			napped = true
			continue
		}
		w.timer.Reset(max(early-rough, min(early, rough)))
		select {
		case <-w.timer.C:
		case <-changed:
		case <-stop.Done():
		}
	}
	w.arrivals.giveBack(v)
	return 0, 0, false
}

// visit takes the lock, counts a view and releases the lock. It returns the outcome; told means that the end of the
// visit is recorded already.
func (w *worker) visit(ctx context.Context, key int32) (outcome history.Outcome, reason history.Reason, told bool) {
	if w.group.Counting == locks.Elsewhere {
		outcome, reason = w.request(ctx, key)
		return outcome, reason, false
	}
	g := &w.grant
	g.spot, g.permits = spot{lane: w.lane, key: key, page: &w.group.Pages[key]}, w.mode()
	w.choose(g)
	if w.calls = nil; w.shape.CancelOneIn > 0 && w.rand.IntN(w.shape.CancelOneIn) == 0 {
		var cancel context.CancelFunc
		w.calls, cancel = context.WithCancel(ctx)
		defer cancel()
		defer time.AfterFunc(w.moment(), cancel).Stop()
	}
	reason = w.acquire(ctx, g)
	switch {
	case reason == history.Crashed:
		return w.die(key, 0)
	case g.hold == 0:
		w.giveUp(g.page.Lock)
		return history.Failed, reason, false
	}
	if !w.pass(ctx, Granted, key, g.hold) {
		return w.die(key, g.hold)
	}
	g.at, w.now = w.now, 0
	outcome, reason = w.count(ctx, g)
	if reason == history.Crashed {
		return w.die(key, g.hold)
	}
	if w.stored != nil {
		return outcome, reason, w.releaseStored(g)
	}
	w.release(key, g.hold, &g.lease, 0)
	return outcome, reason, false
}

// pass is called at a Point at which faults can stop or kill the worker. It returns whether the worker goes on.
func (w *worker) pass(ctx context.Context, p Point, key int32, hold history.ID) bool {
	return w.group.Gate == nil || w.group.Gate.pass(ctx, p, int32(w.shape.First+w.number), key, hold)
}

// grant is the state of a visit that holds the lock. Each worker reuses one, because it is large.
type grant struct {
	spot
	more  []spot // the additional pages of the visit
	lease locks.Lease
	asked time.Duration // call of the last Acquire
	at    time.Duration // time at which the worker learned that the lock was granted
	// permits is the number of permits that the visit requests; 0 = it requests the lock exclusively.
	permits int
	// unsure means that the outcome of the last extension is unknown: the lease may have become shorter.
	unsure bool
}

// acquire makes tries until the lock is granted (history.None) or the visit gives up for the returned reason.
func (w *worker) acquire(ctx context.Context, g *grant) history.Reason {
	op := w.call(history.Acquire, g.key)
	for woken := history.AtOnce; ; op = w.lane.Call(history.Acquire, g.key) {
		// op.Call may be in the future: a stamp may be later than the clock reading from which it was made
		called := min(op.Call, w.clock.Now())
		g.open(history.Acquire)
		lease, err := w.try(w.during(ctx), g, called)
		g.lease = lease
		if g.lease.Tried > 0 {
			op = w.waited(g, op, called+g.lease.Tried)
		}
		id := op.ID
		op.Hold, op.Woken, op.Permits = id, woken, uint16(g.permits)
		g.asked = op.Call
		w.granted(op, &g.lease, err)
		outcome, reason := op.Outcome, op.Reason
		g.close(op)
		w.now = w.lane.Return(op)
		switch {
		case outcome == history.OK:
			g.hold = id
			return history.None
		case reason == history.Crashed:
			return reason
		case outcome == history.Unknown && g.lease.Token != "":
			w.release(g.key, id, &g.lease, 0) // the lock may have been granted, and nothing else would release it
		}
		if !w.pass(ctx, Refused, g.key, 0) {
			return history.Crashed
		}
		left := w.lane.Due + w.patience() - w.now
		if w.during(ctx).Err() != nil {
			return history.Canceled
		}
		if left <= 0 {
			return history.Impatient
		}
		over := false
		if woken, over = w.await(w.during(ctx), g.page.Lock, left); w.handed(g, woken) {
			return history.None
		}
		// a lock that waits inside Acquire has given up, and has left its queue
		if _, waits := w.lock.(locks.Patient); over || waits && reason == history.Busy {
			return history.Impatient
		}
	}
}

// count adds a page view, under a lock or by a baseline, which uses no lock.
func (w *worker) count(ctx context.Context, g *grant) (history.Outcome, history.Reason) {
	switch {
	case g.permits > 0:
		return w.countShared(ctx, g)
	case w.group.Counting == locks.OneStep:
		return w.increment(ctx, g)
	case w.group.Counting == locks.Optimistic:
		return w.optimistic(ctx, g)
	}
	return w.twoSteps(ctx, g)
}

// once makes one load of the counter, waits, and stores the count plus one.
func (w *worker) once(ctx context.Context, g *grant) (history.Outcome, history.Reason) {
	seen, outcome, reason := w.load(ctx, g, &g.spot)
	if outcome == history.OK {
		outcome, reason = w.loadMore(ctx, g)
	}
	if outcome != history.OK {
		return history.Failed, reason // the load failed, and a load changes nothing
	}
	if reason := w.remain(ctx, g); reason != history.None {
		return history.Failed, reason
	}
	outcome, reason = w.store(g, &g.spot, seen, func(c Count) error {
		return w.group.Counter.Store(ctx, g.page.Views, c)
	})
	w.storeMore(ctx, g)
	return outcome, reason
}

// load reads the counter. If no checker reads the history, only a failed load is recorded.
func (w *worker) load(ctx context.Context, g *grant, s *spot) (Count, history.Outcome, history.Reason) {
	var op *history.Op
	if w.group.Judged {
		op = s.lane.Call(history.Load, s.key)
		op.Hold = s.hold
	}
	seen, err := w.seen(ctx, g, s)
	outcome, reason := w.answered(history.Load, err)
	if op != nil {
		op.Value, op.Seen, op.Outcome, op.Reason = seen.Views, seen.Writer, outcome, reason
		s.lane.Return(op)
	} else if outcome != history.OK {
		s.lane.Mark(&history.Op{Kind: history.Load, Key: s.key, Hold: s.hold, Call: g.at, Outcome: outcome,
			Reason: reason})
	}
	return seen, outcome, reason
}

func (w *worker) seen(ctx context.Context, g *grant, s *spot) (Count, error) {
	if c, ok := w.group.Counter.(Shown); ok {
		return c.LoadFor(ctx, s.page.Views, g.lease.Fence)
	}
	return w.group.Counter.Load(ctx, s.page.Views)
}

// store writes the count that was seen, plus one. The value is recorded before it is written, since the worker may be
// killed in between.
func (w *worker) store(g *grant, s *spot, seen Count, write func(Count) error) (history.Outcome, history.Reason) {
	op := s.lane.Call(history.Store, s.key)
	op.Hold, op.Value, op.Seen, op.Fence = s.hold, seen.Views+1, seen.Writer, g.lease.Fence
	err := write(Count{Views: op.Value, Writer: op.ID, Fence: op.Fence})
	outcome, reason := w.answered(history.Store, err)
	op.Outcome, op.Reason = outcome, reason
	if !w.group.Judged && outcome == history.OK && len(g.more) == 0 && w.shape.Term == 0 {
		w.stored, w.now = op, w.clock.Now()
	} else {
		w.now = s.lane.Return(op)
	}
	return outcome, reason
}

// stay waits for the planned time between load and store. It stops when the holder learns that its hold is lost.
func (w *worker) stay(ctx context.Context, g *grant) history.Reason {
	return w.stayFor(ctx, g, w.scale()*w.spread(w.shape.Hold))
}

// release releases a hold, and the visit's additional pages. The argument left is the number of holds that the owner
// of a reentrant lock still has afterwards.
func (w *worker) release(key int32, hold history.ID, lease *locks.Lease, left int64) {
	op := w.call(history.Release, key)
	op.Hold, op.Token, op.Value = hold, w.token(lease), left
	w.grant.open(history.Release)
	ctx := w.cleanup
	if w.calls != nil && hold == w.grant.hold {
		ctx = w.calls
	}
	w.enter()
	err := w.lock.Release(ctx, *lease)
	w.leave()
	op.Outcome, op.Reason = w.answeredAll(history.Release, err)
	w.grant.close(op)
	w.now = w.lane.Return(op)
}

// releaseStored releases a hold whose store is not recorded yet. If all went well, it records the store, the
// release and the end of the visit in one record, and returns true.
func (w *worker) releaseStored(g *grant) (told bool) {
	op := w.stored
	w.stored = nil
	if w.now == 0 {
		w.now = w.clock.Now()
	}
	op.Released = w.now
	w.enter()
	err := w.lock.Release(w.cleanup, g.lease)
	w.leave()
	outcome, reason := w.answered(history.Release, err)
	if outcome == history.OK {
		op.Kind, op.Began, op.Until = history.Visit, w.began, w.free
		w.now = w.lane.Return(op)
		return true
	}
	release := &history.Op{
		Kind: history.Release, Key: op.Key, Hold: op.Hold, Call: op.Released, Outcome: outcome, Reason: reason,
	}
	w.lane.ReturnAt(op, op.Released)
	w.now = w.lane.Mark(release)
	return false
}

// call opens the record of an operation, with the last reading of the clock if that is still valid.
func (w *worker) call(kind history.Kind, key int32) *history.Op {
	if w.now == 0 {
		return w.lane.Call(kind, key)
	}
	return w.lane.CallAt(kind, key, w.now)
}

// token returns the lease's token as the history stores it.
func (w *worker) token(l *locks.Lease) uint64 {
	if !w.group.Judged {
		return 0
	}
	return history.Hash(l.Token)
}

func (w *worker) until(l *locks.Lease) time.Duration {
	if l.Until.IsZero() {
		return history.Forever
	}
	return w.clock.At(l.Until)
}
