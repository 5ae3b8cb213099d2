package witness

import (
	"time"

	"hammerlock/history"
)

// Notice is a step in the life of a lock, as a meter counts it. For and the other durations are 0 where the step has
// none.
type Notice struct {
	Kind   NoticeKind
	Key    string
	Client string // see wire.Request; empty if it is not known whose step it is
	At     time.Duration
	For    time.Duration // how long a client has waited, or held the lock
	Lease  time.Duration // of a hold: the one that it was granted last; 0 = without an end
	Free   time.Duration // of a grant: how long the lock was free although its new holder waited
	Handed bool          // of a grant: Free counts
	Waited bool          // of a grant: a Waits came before
	Cause  string        // of a violation
}

// NoticeKind is the kind of a step.
type NoticeKind uint8

// The kinds. A hold ends by one of Released, Ended and Taken, or by Closed if it cannot be told how.
const (
	Waits       NoticeKind = iota // a client that did not wait is refused
	Refused                       // ... or any client
	GaveUp                        // a client that waited tries no longer
	Granted                       // For is the wait
	Released                      // by its holder, before the lease ended
	Ended                         // the lease ended under its holder
	Taken                         // another command ended it
	Closed                        // it is over
	LateRelease                   // a holder gave back what it had no longer, in vain
	Endless                       // a lock is held without an expiry
	Violation                     // of Cause
)

// The causes of violations that are seen at once.
const (
	Overwritten    = "overwritten"     // a token took the place of another one whose lease went on
	ForeignRelease = "foreign-release" // a late release ended the hold of another client
)

// quietBound is how long a client that waits may let pass before it tries again, unless it has done so before.
const quietBound = time.Second

func (r *Reader) notice(n Notice) {
	if r.o.Notice != nil {
		r.o.Notice(n)
	}
}

// begins tells of a grant.
func (r *Reader) begins(b *book, h *hold, op *history.Op, w *waiter) {
	h.since = op.Return
	if h.since == history.Forever {
		h.since = max(r.now, op.Call)
	}
	n := Notice{Kind: Granted, Key: b.key, Client: h.client, At: h.since, Lease: op.TTL}
	if w != nil {
		n.For, n.Waited = h.since-w.since, w.waits
		n.Handed = b.freed > 0 && w.waits && w.since < b.freed && r.Permits <= 1
		n.Free = max(h.since-b.freed, 0)
	}
	b.freed = 0
	r.notice(n)
}

// refused tells of a try in vain of a client.
func (r *Reader) refused(b *book, w *waiter, op *history.Op) {
	n := Notice{Kind: Refused, Key: b.key, Client: w.client, At: op.Return}
	r.notice(n)
	if w.waits {
		w.pause = max(w.pause, op.Call-w.tried)
	} else {
		w.waits, w.since, n.Kind = true, op.Call, Waits
		r.notice(n)
	}
	w.tried = max(op.Call, min(op.Return, r.now))
}

// leaves tells that a client waits no longer, and was not granted the lock.
func (r *Reader) leaves(b *book, w *waiter) {
	if w.waits {
		w.waits = false
		r.notice(Notice{Kind: GaveUp, Key: b.key, Client: w.client, At: w.tried, For: w.tried - w.since})
	}
}

// ends tells of the end of a hold, once.
func (r *Reader) ends(b *book, h *hold, kind NoticeKind, at time.Duration) {
	if h.closed {
		return
	}
	h.closed = true
	b.freed = max(at, h.since)
	lease := time.Duration(0)
	if h.end != history.Forever {
		lease = h.end - h.call
	}
	r.notice(Notice{Kind: kind, Key: b.key, Client: h.client, At: b.freed, For: b.freed - h.since, Lease: lease})
}

// over tells of the end of a hold that was not given back.
func (r *Reader) over(b *book, h *hold) {
	if h.ended && (h.end == history.Forever || h.over < h.call+surely(h.end-h.call)) {
		r.ends(b, h, Taken, h.over)
		return
	}
	r.ends(b, h, Ended, h.end)
}

// releases tells of a release. Where no effects are seen, it ended the hold of another client if that went on, and its
// own did not.
func (r *Reader) releases(b *book, a *act) {
	h, op := a.hold, &a.op
	if op.Value > 0 {
		return // a re-entered hold stays
	}
	victim := a.victim
	if h.end <= op.Call && r.Permits <= 1 && r.o.Sites == 1 && a.words {
		for _, o := range b.holds {
			if o != h && o.has(op.Call) && !o.closed && !(o.lost && o.words) {
				victim = o
			}
		}
	}
	switch {
	case op.Outcome == history.OK && victim != nil && !(a.guess && r.Improper > 0):
		r.over(b, h)
		r.ends(b, victim, Taken, op.Return)
		r.notice(Notice{Kind: Violation, Key: b.key, Client: h.client, At: op.Return, Cause: ForeignRelease})
	case op.Outcome == history.OK:
		r.ends(b, h, Released, op.Call)
		b.freed = max(b.freed, min(op.Return, r.now))
	case op.Outcome == history.Failed && (h.ended || h.end <= op.Return):
		r.over(b, h)
		r.notice(Notice{Kind: LateRelease, Key: b.key, Client: h.client, At: op.Return})
	default:
		r.ends(b, h, Closed, op.Call)
	}
}

// lapse tells of what only time tells of the holds and waiters of a book: leases that ended, locks without one, and
// clients that wait no longer. An answer, or an effect, may come late.
func (b *book) lapse(r *Reader) {
	for _, h := range b.holds {
		if !h.closed && (h.ended || h.end < r.now-roundBound) {
			r.over(b, h)
		}
		if h.end == history.Forever && !h.closed && !h.endless && r.now-h.call > endlessBound {
			h.endless = true
			r.notice(Notice{Kind: Endless, Key: b.key, Client: h.client, At: r.now})
		}
	}
	for _, w := range b.waiters {
		if r.now-w.last > max(quietBound, 2*w.pause)+effectBound {
			r.leaves(b, w)
		}
	}
}

// Open is what goes on at a time, which is now: a Waits for each client that waits, and a Granted for each that holds,
// with how long it does so.
func (r *Reader) Open(now time.Duration) (all []Notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.books {
		for _, h := range b.holds {
			if !h.closed {
				n := Notice{Kind: Granted, Key: b.key, Client: h.client, At: now, For: max(now-h.since, 0)}
				all = append(all, n)
			}
		}
		for _, w := range b.waiters {
			if w.waits {
				all = append(all, Notice{Kind: Waits, Key: b.key, Client: w.client, At: now, For: max(now-w.since, 0)})
			}
		}
	}
	return all
}
