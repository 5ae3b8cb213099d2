package checker

import (
	"slices"
	"time"

	"hammerlock/history"
)

// ruler computes when holds may have begun and ended. Its times may be history.Forever.
type ruler struct {
	c     *Case
	scope scope
}

// least is T1, the shortest time for which a server may keep a lease; Forever if leases do not end.
func (r *ruler) least(ttl time.Duration) time.Duration {
	if !r.c.Claims.Expires || ttl <= 0 {
		return history.Forever
	}
	return max(ttl-r.drift(ttl), 0)
}

// most is T2, the longest time for which a server may keep a lease.
func (r *ruler) most(ttl time.Duration) time.Duration {
	if !r.c.Claims.Expires || ttl <= 0 {
		return history.Forever
	}
	return r.c.longest(ttl)
}

func (r *ruler) drift(ttl time.Duration) time.Duration {
	return time.Duration(float64(ttl)*r.c.Bounds.Rate) + r.c.Bounds.Round
}

// plus adds a duration to a time; Forever if that is too late for a time.
func plus(t, d time.Duration) time.Duration {
	if t == history.Forever || d == history.Forever || t > history.Forever-d {
		return history.Forever
	}
	return t + d
}

// minus subtracts a duration from a time.
func minus(t, d time.Duration) time.Duration {
	switch {
	case t == history.Forever:
		return t
	case d == history.Forever:
		return -history.Forever
	}
	return t - d
}

// ending says how a hold ended on the servers.
type ending uint8

const (
	endless  ending = iota // there was no release: it ends by expiry, or never
	returned               // its release took effect between call and return, so it was held until the call
	maybe                  // its release may have taken effect at any time after the call
	gone                   // the answer to its release was that it had been lost
)

// believed is B, the time in which the holder relies on the lock: from the grant to the first of release call,
// deadline, loss signal and crash.
func (h *hold) believed() (from, to time.Duration) { return h.Return, h.trusted() }

// lapse is when B would have ended without a release.
func (h *hold) lapse() time.Duration { return min(h.Until, h.Lost, h.Crashed) }

// trusted is the end of B. A hold that was upgraded is relied on until the answer to the upgrade.
func (h *hold) trusted() time.Duration { return min(h.lapse(), h.back()) }

// back is when a holder gave the lock back: it called Release, or learned that it was upgraded.
func (h *hold) back() time.Duration {
	if h.upgraded {
		return h.releaseReturn
	}
	return h.releaseCall
}

// assured is the earliest end of a lease that is not released: last proof + T1. If extensions overlap, any of them may
// have been the last. One without an answer can only have shortened the lease, to its own TTL from the time when it
// took effect.
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

// latest is the latest end of a lease, as far as is known.
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

// granted is how long the lease of an Acquire lasts at least.
func (r *ruler) granted(h *hold) time.Duration {
	if h.TTL > 0 && !r.c.Claims.Begins { // reading the operation would give the same result
		return plus(h.Call, r.least(h.TTL))
	}
	return r.promised(r.c.acquire(h))
}

// promised is how long the lease by a call lasts at least: call + T1. If it is not recorded what was requested, or if
// leases may begin before the call, it is until the holder's deadline.
func (r *ruler) promised(op *history.Op) time.Duration { return r.promisedFrom(op, op.Call) }

func (r *ruler) promisedFrom(op *history.Op, call time.Duration) time.Duration {
	end := plus(call, r.least(op.TTL))
	switch {
	case !r.c.Claims.Expires:
	case op.TTL == 0 && op.Until != 0:
		return op.Until
	case r.c.Claims.Begins && op.Kind == history.Acquire && (op.Until == 0 || op.Until == history.Forever):
		return op.Call // it is unknown when the lease began
	case r.c.Claims.Begins && op.Until != 0 && op.Until != history.Forever:
		return min(op.Until, end)
	}
	return end
}

// slot says when a hold may have begun on the servers, and how early it may then have ended.
type slot struct {
	lo, hi time.Duration // it began between lo and hi
	kind   ending
	call   time.Duration // of the release
	least  time.Duration // T1, counted from the start; Forever if the end does not depend on the start
	most   time.Duration // if an extension without an answer may have shortened the lease: until when
	over   time.Duration // last proof + T1
}

// slot computes bounds for the start of a hold. Its last extension gives a lower bound, because the lease has to last
// from each extension to the next, and to a successful release (algorithm L in METHOD.md). All times of a hold are of
// one clock, which may differ from other clocks.
func (r *ruler) slot(h *hold, coupled bool) slot {
	s := slot{lo: h.Call, hi: h.Return, kind: h.ending, call: h.releaseCall, over: r.assured(h), least: r.least(h.TTL),
		most: history.Forever}
	need := -history.Forever // the lease was valid then
	if s.kind == returned {
		need = s.call
	}
	// refreshed and unknown tell whether an extension without an answer may have made the lease last longer than is
	// known.
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
		// the answer was that it is lost, although it was guaranteed; or a few sites had kept it until then
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

// end is the earliest end of a hold that began at x.
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
