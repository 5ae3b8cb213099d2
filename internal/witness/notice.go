package witness

import (
	"time"

	"hammerlock/history"
)

// Notice is a step in the life of a lock, for measurements. Durations that a step does not have are 0.
type Notice struct {
	Kind   NoticeKind
	Key    string
	Client string // see wire.Request; empty if the client is unknown
	At     time.Duration
	For    time.Duration // how long the client has waited, or held the lock
	Lease  time.Duration // for a hold: its last lease; 0 = it has no end
	Free   time.Duration // for a grant: how long the lock was free while its new holder waited
	Handed bool          // for a grant: Free is known
	Waited bool          // for a grant: the client has waited
	Cause  string        // of a violation
}

// NoticeKind is the kind of a step.
type NoticeKind uint8

// The kinds of steps. A hold ends by Released, Ended or Taken, or by Closed if it is unknown how.
const (
	Waits       NoticeKind = iota // a client that did not wait is refused
	Refused                       // any client is refused
	GaveUp                        // a client that waited tries no longer
	Granted                       // a client is granted the lock; For is how long it has waited
	Released                      // its holder releases it before the end of the lease
	Ended                         // its lease ends before it is released
	Taken                         // another command ends it
	Closed                        // it is over
	LateRelease                   // a holder releases a lock that it has lost, without an effect
	Endless                       // a lock is held without an expiry
	Violation                     // of Cause
)

// Causes of violations that are reported at once.
const (
	Overwritten    = "overwritten"     // a token has replaced another one whose lease had not ended
	ForeignRelease = "foreign-release" // a late release has ended the hold of another client
)

// quietBound is how long a waiting client may go without a try, unless it has gone longer before.
const quietBound = time.Second

func (r *Reader) notice(n Notice) {
	if r.o.Notice != nil {
		r.o.Notice(n)
	}
}

// begins reports a grant.
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

// refused reports a try of a client that was refused.
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

// leaves reports that a client waits no longer, without a grant.
func (r *Reader) leaves(b *book, w *waiter) {
	if w.waits {
		w.waits = false
		r.notice(Notice{Kind: GaveUp, Key: b.key, Client: w.client, At: w.tried, For: w.tried - w.since})
	}
}

// ends reports the end of a hold, once.
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

// over reports the end of a hold that was not released.
func (r *Reader) over(b *book, h *hold) {
	if h.ended && (h.end == history.Forever || h.over < h.call+surely(h.end-h.call)) {
		r.ends(b, h, Taken, h.over)
		return
	}
	r.ends(b, h, Ended, h.end)
}

// releases reports a release. If effects are not seen, it is assumed to end another client's hold if that was valid and
// the client's own was not.
func (r *Reader) releases(b *book, a *act) {
	h, op := a.hold, &a.op
	if op.Value > 0 {
		return // an inner release of a reentrant lock does not end the hold
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

// lapse reports what only the passing of time shows: leases that have ended, locks without an expiry, and clients that
// wait no longer. It allows for replies and effects that come late.
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

// Open lists what is going on now: a Waits for each client that waits, and a Granted for each hold, with their
// durations.
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
