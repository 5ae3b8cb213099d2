package checker

import (
	"slices"
	"time"

	"hammerlock/history"
)

// ruler measures holds. Its times may be history.Forever.
type ruler struct {
	c     *Case
	scope scope
}

// least is T1, the shortest life that a server may give a lease; Forever if leases do not expire.
func (r *ruler) least(ttl time.Duration) time.Duration {
	if !r.c.Claims.Expires || ttl <= 0 {
		return history.Forever
	}
	return max(ttl-r.drift(ttl), 0)
}

// most is T2, the longest life that a server may give a lease.
func (r *ruler) most(ttl time.Duration) time.Duration {
	if !r.c.Claims.Expires || ttl <= 0 {
		return history.Forever
	}
	return r.c.longest(ttl)
}

func (r *ruler) drift(ttl time.Duration) time.Duration {
	return time.Duration(float64(ttl)*r.c.Bounds.Rate) + r.c.Bounds.Round
}

// plus adds a duration to a time; beyond the last time it is Forever.
func plus(t, d time.Duration) time.Duration {
	if t == history.Forever || d == history.Forever || t > history.Forever-d {
		return history.Forever
	}
	return t + d
}

// minus takes a duration from a time. Forever before any time is -Forever.
func minus(t, d time.Duration) time.Duration {
	switch {
	case t == history.Forever:
		return t
	case d == history.Forever:
		return -history.Forever
	}
	return t - d
}

// ending is what is known of how a hold ended in the servers.
type ending uint8

const (
	endless  ending = iota // no release: it ends by expiry, or never
	returned               // its release took effect between call and return, so that it was held until the call
	maybe                  // its release may have taken effect at any time from the call on
	gone                   // its release was answered that it was over
)

// believed is B: from grant to the first of release call, deadline, loss signal and crash.
func (h *hold) believed() (from, to time.Duration) { return h.Return, h.trusted() }

// lapse is when B would have ended without a release.
func (h *hold) lapse() time.Duration { return min(h.Until, h.Lost, h.Crashed) }

// trusted is the end of B. A hold that was upgraded is believed in until the upgrade was answered.
func (h *hold) trusted() time.Duration { return min(h.lapse(), h.back()) }

// back is when a hold's holder gave it back: it called its release, or heard that it was upgraded.
func (h *hold) back() time.Duration {
	if h.upgraded {
		return h.releaseReturn
	}
	return h.releaseCall
}

// assured is when the lease is over at the earliest if it is not given back: last proof + T1. Of extensions that
// overlap, any may have been the last. One that is in doubt can only have made the lease shorter, and only by its own
// TTL: if it landed after the proof, its lease counts from then.
func (r *ruler) assured(h *hold) time.Duration {
	end, next, proof := history.Forever, history.Forever, time.Duration(0)
	for _, n := range slices.Backward(r.c.extends(h)) {
		op := &r.c.Ops[n]
		if op.Outcome == history.Failed {
			continue
		}
		if op.Outcome == history.OK && op.Return < next && next != history.Forever {
			return end
		}
		if op.Outcome == history.OK {
			next, proof = min(next, op.Call), max(proof, op.Call)
		}
		end = min(end, r.promisedFrom(op, max(op.Call, proof)))
	}
	if next != history.Forever {
		return end
	}
	return min(end, r.granted(h))
}

// latest is when the lease of a hold is over at the latest, as far as is known.
func (r *ruler) latest(h *hold) time.Duration {
	end := history.Forever
	if h.Outcome == history.OK {
		end = plus(h.Return, r.most(h.TTL))
	}
	for _, n := range r.c.extends(h) {
		switch op := &r.c.Ops[n]; op.Outcome {
		case history.OK:
			end = max(end, plus(op.Return, r.most(op.TTL)))
		case history.Unknown:
			end = history.Forever
		}
	}
	return end
}

// granted is how long a hold's acquire was good for at least.
func (r *ruler) granted(h *hold) time.Duration {
	if h.TTL > 0 && !r.c.Claims.Begins { // the operation would say no more, and need not be read
		return plus(h.Call, r.least(h.TTL))
	}
	return r.promised(r.c.acquire(h))
}

// promised is how long a call that was granted, or may have been, is good for at least: call + T1. Where no record says
// what was asked for, or where leases begin before that, it is until the holder was told.
func (r *ruler) promised(op *history.Op) time.Duration { return r.promisedFrom(op, op.Call) }

func (r *ruler) promisedFrom(op *history.Op, call time.Duration) time.Duration {
	end := plus(call, r.least(op.TTL))
	switch {
	case !r.c.Claims.Expires:
	case op.TTL == 0 && op.Until != 0:
		return op.Until
	case r.c.Claims.Begins && op.Kind == history.Acquire && (op.Until == 0 || op.Until == history.Forever):
		return op.Call // when it began is not known
	case r.c.Claims.Begins && op.Until != 0 && op.Until != history.Forever:
		return min(op.Until, end)
	}
	return end
}

// slot says when a hold may have begun in the servers, and when it has ended at the earliest then.
type slot struct {
	lo, hi time.Duration // it began in [lo, hi]
	kind   ending
	call   time.Duration // of the release
	least  time.Duration // T1, counted from the start; Forever if the end does not depend on the start
	most   time.Duration // where an extension without an answer may have shortened that: as far as it is good for
	over   time.Duration // last proof + T1
}

// slot finds the bounds of a hold's start. The last extension binds the start from behind: the lease has to reach
// from one to the next, and to a release that succeeded. (Algorithm L of the method.) All of a
// hold is on one clock; compared with others it may be off.
func (r *ruler) slot(h *hold, coupled bool) slot {
	s := slot{lo: h.Call, hi: h.Return, kind: h.ending, call: h.releaseCall, over: r.assured(h), least: r.least(h.TTL),
		most: history.Forever}
	need := -history.Forever // the lease was alive then
	if s.kind == returned {
		need = s.call
	}
	// unknown: an extension without an answer may have carried the lease further than is known
	refreshed, unknown := false, false
	for _, n := range slices.Backward(r.c.extends(h)) {
		op := &r.c.Ops[n]
		if op.Outcome == history.Unknown {
			s.most, unknown = min(s.most, r.promised(op)), true
		}
		if op.Outcome != history.OK {
			continue
		}
		refreshed = true
		need = max(op.Call, minus(need, r.most(op.TTL)))
	}
	if s.kind == gone && (r.c.Sites > 1 || s.over > h.releaseReturn) {
		// it was answered to be over while it was guaranteed; or a few of its sites had kept it until then
		s.kind = maybe
	}
	if refreshed || r.c.Claims.Begins {
		s.least = history.Forever // the end does not depend on the start
	} else if s.kind == gone && s.least != history.Forever && s.most > h.releaseReturn &&
		r.c.forgot(h, h.releaseReturn) == nil {
		s.hi = min(s.hi, minus(h.releaseReturn, s.least))
	}
	if need > -history.Forever && !unknown {
		s.lo = max(s.lo, minus(need, r.most(h.TTL)))
	}
	if !coupled {
		s.lo, s.hi, s.least = h.Call, h.Return, history.Forever
	}
	half := r.half(h)
	s.lo = min(s.lo, s.hi) - half
	s.hi, s.call, s.over = plus(s.hi, half), minus(s.call, half), minus(s.over, half)
	s.most = minus(s.most, half)
	return s
}

// end is when a hold that began at x has ended at the earliest.
func (s *slot) end(x time.Duration) time.Duration {
	over := s.over
	if s.least != history.Forever {
		over = max(over, min(plus(x, s.least), s.most))
	}
	switch s.kind {
	case returned:
		return max(s.call, x)
	case maybe:
		return max(min(s.call, over), x)
	default:
		return max(over, x)
	}
}
