package workload

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"hammerlock/history"
	"hammerlock/locks"
	"hammerlock/topologies"
)

// waiting is a lock that waits by itself: it is refused for a while, and then granted.
type waiting struct {
	scripted
	most time.Duration // longest requested wait
}

const refusedFor, grantedAfter = 15 * time.Millisecond, 20 * time.Millisecond

func (l *waiting) open(int) locks.Lock { return l }

func (l *waiting) AcquireWithin(_ context.Context, key string, ttl, wait time.Duration) (locks.Lease, error) {
	l.most = wait
	until := time.Now().Add(refusedFor + ttl)
	<-time.After(grantedAfter)
	return locks.Lease{Key: key, Token: "t", Until: until, Tried: refusedFor}, nil
}

// TestALockThatWaitsByItself: the history of such a lock is like that of a lock whose worker tries again and again.
// The lease does not begin before the granted try.
func TestALockThatWaitsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &waiting{}
		plan := Shape{Workers: 1, Keys: 1, Visits: 1, End: time.Hour, Wait: time.Minute, TTL: 5 * time.Second}
		_, ops, _ := run(t, plan, l.open, t.Context())
		h := &history.History{Header: history.Header{Workers: 1, Keys: 1}, Ops: ops}
		if err := h.Validate(); err != nil {
			t.Fatal(err)
		}
		refused, granted := ops[0], ops[1]
		switch {
		case refused.Kind != history.Acquire || refused.Outcome != history.Failed || refused.Reason != history.Busy ||
			refused.Return-refused.Call != refusedFor-1:
			t.Errorf("the wait: %+v", refused)
		case granted.Kind != history.Acquire || granted.Outcome != history.OK || granted.Call <= refused.Return ||
			granted.Return-refused.Call < grantedAfter:
			t.Errorf("the try that was granted: %+v", granted)
		case granted.Until > granted.Return+plan.TTL || granted.Until < granted.Call+plan.TTL-time.Second ||
			granted.TTL != plan.TTL:
			t.Errorf("its lease: %+v", granted)
		case l.most > plan.Wait || l.most < plan.Wait/2:
			t.Errorf("it was asked to wait for %v of %v", l.most, plan.Wait)
		}
		for _, op := range ops[2:] {
			if op.Kind != history.End && op.Hold != granted.ID {
				t.Errorf("not of the hold: %+v", op)
			}
		}
	})
}

// queue is a lock that is granted while its worker waits.
type queue struct{ scripted }

func (l *queue) open(int) locks.Lock { return l }

func (l *queue) Wait(context.Context, string) (history.Wake, error) {
	<-time.After(grantedAfter)
	return history.Signal, nil
}

func (l *queue) Handed(key string) (locks.Lease, time.Time, bool) {
	since := time.Now().Add(-grantedAfter / 2)
	return locks.Lease{Key: key, Token: "t", Until: since.Add(time.Second)}, since, true
}

// TestAGrantThatIsHandedOver: its record begins with the lease, not when the worker learned of it.
func TestAGrantThatIsHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &queue{scripted{acquire: func(int) error { return locks.ErrBusy }}}
		plan := Shape{Workers: 1, Keys: 1, Visits: 2, End: time.Hour, Wait: time.Minute, TTL: 5 * time.Second}
		_, ops, _ := run(t, plan, l.open, t.Context())
		h := &history.History{Header: history.Header{Workers: 1, Keys: 1}, Ops: ops}
		if err := h.Validate(); err != nil {
			t.Fatal(err)
		}
		refused, granted := ops[0], ops[1]
		switch took := granted.Return - granted.Call; {
		case refused.Outcome != history.Failed || granted.Kind != history.Acquire || granted.Outcome != history.OK ||
			granted.Hold != granted.ID || granted.Woken != history.Signal:
			t.Errorf("refused: %+v, then handed over: %+v", refused, granted)
		case granted.Call <= refused.Return || took < grantedAfter/2 || granted.TTL != plan.TTL ||
			granted.Until <= granted.Call:
			t.Errorf("handed over %v before it was looked at: %+v", took, granted)
		}
		if n := count(ops, history.End, history.OK); n != int64(plan.Visits) {
			t.Errorf("%d visits of %d", n, plan.Visits)
		}
	})
}

// leaver is a lock with a queue, which its Wait leaves when its context ends.
type leaver struct{ scripted }

func (l *leaver) Wait(ctx context.Context, _ string) (history.Wake, error) {
	<-ctx.Done()
	return history.Poll, ctx.Err()
}

// early is a lock that waits itself, and gives up before the time that it was given is over.
type early struct{ scripted }

func (*early) AcquireWithin(context.Context, string, time.Duration, time.Duration) (locks.Lease, error) {
	return locks.Lease{}, locks.ErrBusy
}

// TestAVisitThatGaveUpItsPlaceAsksNoMore: another try would be at the end of the queue, and a checker would take the
// two waits for one. Both locks have a queue and leave it: one when its context ends, one when it says that it is busy.
func TestAVisitThatGaveUpItsPlaceAsksNoMore(t *testing.T) {
	busy := func(int) error { return locks.ErrBusy }
	for _, l := range []locks.Lock{&leaver{scripted{acquire: busy}}, &early{scripted{acquire: busy}}} {
		gaveUp(t, l)
	}
}

func gaveUp(t *testing.T, l locks.Lock) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		plan := Shape{Workers: 1, Keys: 1, Visits: 3, End: time.Hour, Wait: 20 * time.Millisecond, TTL: time.Second,
			Retry: time.Millisecond}
		_, ops, _ := run(t, plan, func(int) locks.Lock { return l }, t.Context())
		if tries := count(ops, history.Acquire, history.Failed); tries != int64(plan.Visits) ||
			count(ops, history.End, history.Failed) != tries {
			t.Errorf("%T: %d tries of %d visits: %+v", l, tries, plan.Visits, ops)
		}
	})
}

type unreachable struct{ waiting }

func (*unreachable) AcquireWithin(context.Context, string, time.Duration, time.Duration) (locks.Lease, error) {
	return locks.Lease{}, fmt.Errorf("%w: no entry\nfor hunter2 %s", topologies.ErrUnreachable,
		strings.Repeat("ß", mostSaid))
}

// TestWhatErrorsSaidIsKept: the first text of each kind, on one line, limited, and without passwords. Ordinary
// refusals leave no text.
func TestWhatErrorsSaidIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := Shape{
			Workers: 2, Keys: 1, Visits: 1, End: time.Hour, Wait: 20 * time.Millisecond, Retry: time.Millisecond,
		}
		hide := func(w *Workers) { w.Secrets.Add("hunter2") }
		due, _, _ := runWith(t, plan, func(int) locks.Lock { return &unreachable{} }, t.Context(), hide)
		said := due.Said["acquire failed unreachable"]
		if len(due.Said) != 1 || !strings.Contains(said, "no entry for *** ß") || len(said) > mostSaid+2 ||
			!utf8.ValidString(said) {
			t.Errorf("%q", due.Said)
		}
		if due, _, _ = run(t, plan, catalogued(t, "local"), t.Context()); len(due.Said) != 0 {
			t.Errorf("%q", due.Said)
		}
	})
}
