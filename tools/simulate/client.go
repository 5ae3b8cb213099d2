package main

import (
	"fmt"
	"time"

	"hammerlock/history"
)

// hold is a worker's view of its hold.
type hold struct {
	id      history.ID
	token   uint64
	page    int32
	permits int
	worker  int32
	fence   int64
	until   time.Duration // on the clock of its process
	count   int
	lost    bool // the worker knows that the hold is lost
	over    bool // released, or being released
	granted bool

	from, to time.Duration // when its holder believed in it, on the true clock
}

// token makes a new token. As in a history, it is the hash of a text.
func (w *world) token() uint64 {
	w.tokens++
	return history.Hash(fmt.Sprintf("token-%d", w.tokens))
}

func (w *world) quorum() int {
	switch n := len(w.sites); {
	case w.wrong == smallQuorum:
		return n / 2
	default:
		return n/2 + 1
	}
}

func votes(replies []reply) (granted, refused, gone int, last reply) {
	for _, r := range replies {
		switch r.said {
		case yes:
			granted, last = granted+1, r
		case busy:
			refused++
		case lost:
			gone++
		}
	}
	return granted, refused, gone, last
}

// patience is a client's timeout.
func (w *world) patience() time.Duration { return max(w.ttl/4, 20*time.Millisecond) }

// deadline returns the time until which a lease is certain. The argument is the time of the call.
func (w *world) deadline(from time.Duration) time.Duration {
	b := &w.h.Bounds
	return from + w.ttl - time.Duration(float64(w.ttl)*b.Rate) - b.Round
}

// believes sets the deadline as the holder knows it.
func (h *hold) believes(w *world, op *history.Op, now time.Duration) {
	switch {
	case w.ttl == 0:
		h.until = history.Forever
	case w.wrong == endless || w.wrong == stopsRenewing:
		h.until, op.Until = history.Forever, history.Forever
	case w.wrong == fromReply:
		h.until, op.Until = now+w.ttl, now+w.ttl
	default:
		h.until = w.deadline(op.Call)
		op.Until = h.until
	}
}

// acquire makes one try. It returns nil if the lock was refused. If the outcome is unknown, the result has granted
// = false.
func (t *thread) acquire(q request, upgraded *hold) *hold {
	w := t.w
	q.token, q.ttl = w.token(), w.ttl
	op := t.call(history.Op{Kind: history.Acquire, Key: q.page, Token: q.token, TTL: w.ttl, Permits: uint16(q.permits)})
	if upgraded != nil {
		op.Seen, q.replaces = upgraded.id, upgraded.token
	}
	h := &hold{id: op.ID, token: q.token, page: q.page, permits: q.permits, worker: t.worker, count: 1}
	forced := false
	if w.wrong == checkThenSet {
		if n, refused, _, _ := votes(t.ask(w.sites, w.patience(),
			func(s *site) reply { return s.looks(q) })); n < w.quorum() {
			t.done(op, history.Failed, history.Busy)
			if refused == 0 {
				op.Outcome, op.Reason = history.Unknown, history.Timeout
			}
			return nil
		}
		forced = true
	}
	replies := t.ask(w.sites, w.patience(), func(s *site) reply { return s.try(q, forced) })
	n, refused, gone, last := votes(replies)
	if w.wrong == countsSilence {
		n = len(w.sites) - refused
	}
	now := t.stamp()
	switch {
	case n >= w.quorum():
		if h.believes(w, op, now); w.strict && now >= h.until {
			t.done(op, history.Unknown, history.Expired)
			op.Until = 0
			return h
		}
		t.done(op, history.OK, history.None)
		h.granted, h.from, h.to = true, w.now, history.Forever
		h.fence = w.fence(t, last.fence)
		op.Fence = h.fence
		if w.counts {
			op.Value = last.count
		}
		w.beliefs = append(w.beliefs, h)
		return h
	case gone > 0:
		t.done(op, history.Failed, history.Lost)
		upgraded.loses(w)
		return nil
	case len(w.sites)-refused < w.quorum():
		why := history.Busy
		if len(w.sites) > 1 {
			why = history.Quorum
			t.cleanUp(h)
		}
		t.done(op, history.Failed, why)
		return nil
	default:
		t.done(op, history.Unknown, history.Timeout)
		return h
	}
}

// cleanUp releases what a minority of the sites granted. It belongs to the try and is not recorded as an operation.
func (t *thread) cleanUp(h *hold) {
	t.ask(t.w.sites, t.w.patience(), func(s *site) reply { return s.release(h.page, h.token, false) })
}

// fence is the fencing token that a grant reports.
func (w *world) fence(t *thread, given int64) int64 {
	switch {
	case !w.h.Claims.Fences || w.slips(noFence):
		return 0
	case w.wrong == localFence:
		t.p.fence += 1 + w.r.Int64N(3)
		return t.p.fence
	default:
		return given
	}
}

// extend extends a lease, and returns the outcome.
func (t *thread) extend(h *hold, timeout time.Duration) history.Outcome {
	w := t.w
	op := t.call(history.Op{Kind: history.Extend, Key: h.page, Hold: h.id, Token: h.token, TTL: w.ttl})
	n, refused, gone, _ := votes(t.ask(w.sites, timeout, func(s *site) reply {
		return s.extend(h.page, h.token, h.permits, w.ttl)
	}))
	quorum := w.quorum()
	if w.wrong == extendsOne {
		quorum = 1
	}
	now, until := t.stamp(), w.deadline(op.Call)
	switch {
	case n >= quorum || w.wrong == hopes && n+gone+refused == 0:
		if w.strict && now >= until {
			t.done(op, history.Unknown, history.Expired)
			break
		}
		t.done(op, history.OK, history.None)
		if until = h.until; !h.over {
			h.believes(w, op, now)
			h.until = max(h.until, until)
		} else {
			op.Until = w.deadline(op.Call)
		}
	case len(w.sites)-gone < w.quorum():
		t.done(op, history.Failed, history.Lost)
		h.loses(w)
	case len(w.sites)-refused < w.quorum():
		t.done(op, history.Failed, history.Busy)
	default:
		t.done(op, history.Unknown, history.Timeout)
	}
	return op.Outcome
}

func (h *hold) loses(w *world) {
	h.lost = true
	h.to = min(h.to, w.now)
}

func (t *thread) reenter(h *hold) {
	w := t.w
	op := t.call(history.Op{Kind: history.Acquire, Key: h.page, Hold: h.id, Token: h.token, TTL: w.ttl})
	q := request{page: h.page, token: h.token, ttl: w.ttl}
	n, refused, gone, last := votes(t.ask(w.sites, w.patience(), func(s *site) reply { return s.reenter(q) }))
	switch {
	case n > 0:
		t.done(op, history.OK, history.None)
		h.believes(w, op, op.Return)
		h.count++
		if w.counts {
			op.Value = last.count
		}
		if w.slips(newToken) {
			op.Token = w.token()
		}
		if !w.counts || last.count > 1 {
			return
		}
		h.count = int(last.count) // the old hold was over: this is a new one with the same token
	case gone > 0:
		t.done(op, history.Failed, history.Lost)
		h.loses(w)
	case refused > 0:
		t.done(op, history.Failed, history.Busy)
	default:
		t.done(op, history.Unknown, history.Timeout)
	}
}

// release releases a hold once. It returns the outcome, and the remaining count if the lock reports counts.
func (t *thread) release(h *hold) (history.Outcome, int64) {
	w := t.w
	if h.count <= 1 {
		h.over = true
		h.to = min(h.to, w.now)
	}
	op := t.call(history.Op{Kind: history.Release, Key: h.page, Hold: h.id, Token: h.token})
	whole := w.wrong == plainDelete
	if w.wrong == checkThenDelete {
		if n, _, gone, _ := votes(t.ask(w.sites, w.patience(),
			func(s *site) reply { return s.owns(h.page, h.token) })); n == 0 {
			t.done(op, history.Unknown, history.Timeout)
			if gone > 0 {
				op.Outcome, op.Reason = history.Failed, history.Lost
			}
			return op.Outcome, 0
		}
		if w.one(w.often) {
			t.sleep(w.between(0, w.ttl))
		}
		whole = true
	}
	n, _, gone, last := votes(t.ask(w.sites, w.patience(), func(s *site) reply {
		return s.release(h.page, h.token, whole)
	}))
	switch {
	case n >= w.quorum():
		t.done(op, history.OK, history.None)
		h.count--
		if w.counts {
			op.Value = last.count
		}
	case len(w.sites)-gone < w.quorum():
		t.done(op, history.Failed, history.Lost)
		h.loses(w)
	default:
		t.done(op, history.Unknown, history.Timeout)
		h.count-- // the release may have succeeded
	}
	return op.Outcome, op.Value
}
