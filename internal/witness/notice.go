package witness

import (
	"time"

	"hammerlock/history"
)

// Notice is a step in the life of a lock, for measurements. Durations that do not apply to a step are 0.
type Notice struct {
	Kind   NoticeKind
	Key    string
	Client string // see wire.Request; empty if the client is unknown
	At     time.Duration
	For    time.Duration // how long the client waited, or held the lock
	Lease  time.Duration // for a hold: its latest lease; 0 = the lease never ends
	Free   time.Duration // for a grant: how long the lock was free while its new holder waited
	Handed bool          // for a grant: Free is valid
	Waited bool          // for a grant: the client has waited
	Cause  string        // of a violation, for example Overwritten
}

type NoticeKind uint8

// The kinds of steps. A hold ends with Released, Ended or Taken; with Closed if the way it ended is unknown.
const (
	Waits       NoticeKind = iota // a client is refused for the first time, and begins to wait
	Refused                       // any client is refused
	GaveUp                        // a waiting client stops trying
	Granted                       // a client is granted the lock; For is the time that it waited
	Released                      // the holder releases the lock before the lease ends
	Ended                         // the lease ends before a release
	Taken                         // another command ends the hold
	Closed                        // the hold is over; how it ended is unknown
	LateRelease                   // a holder releases a lock that it has lost already, without an effect
	Endless                       // a lock is held without an expiry
	Violation                     // a violation; Cause says which
)

// Causes of violations that are reported while the reader runs.
const (
	Overwritten    = "overwritten"     // a token has replaced another one whose lease had not ended
	ForeignRelease = "foreign-release" // a late release has ended the hold of another client
)

// quietBound is the longest time that a waiting client may pass without a try; after it, the client counts as gone. A
// client that has once paused longer gets more time: see lapse.
const quietBound = time.Second

func (r *Reader) notice(n Notice) {
	if r.o.Notice != nil {
		r.o.Notice(n)
	}
}

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

// leaves reports that a client stopped waiting without a grant.
func (r *Reader) leaves(b *book, w *waiter) {
	if w.waits {
		w.waits = false
		r.notice(Notice{Kind: GaveUp, Key: b.key, Client: w.client, At: w.tried, For: w.tried - w.since})
	}
}

// ends reports the end of a hold. It does nothing if that was reported before.
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

// releases reports a release. If effects are not seen, it assumes the worst: a late release ended a valid
// hold of another client.
func (r *Reader) releases(b *book, a *act) {
	h, op := a.hold, &a.op
	if op.Value > 0 {
		return
	}
	victim, at := a.victim, op.Call
	if a.q == nil {
		at = op.Return // the command was not seen: the effect tells when
	}
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
		r.ends(b, h, Released, at)
		b.freed = max(b.freed, min(op.Return, r.now))
	case op.Outcome == history.Failed && (h.ended || h.end <= op.Return):
		r.over(b, h)
		r.notice(Notice{Kind: LateRelease, Key: b.key, Client: h.client, At: op.Return})
	default:
		r.ends(b, h, Closed, at)
	}
}

// lapse reports the steps that only the passing of time shows: leases that ended, locks without an expiry, and clients
// that stopped waiting. It leaves time for late replies and effects.
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

// Open returns the current state: a Waits for each waiting client, and a Granted for each hold, with their durations.
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
