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

// plus adds a duration to a time; Forever if that is too late for a time.
func plus(t, d time.Duration) time.Duration {
	if t == history.Forever || d == history.Forever || t > history.Forever-d {
		return history.Forever
	}
	return t + d
}

// minus subtracts a duration from a time; Forever minus anything is Forever.
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

// believed is the period in which the holder relies on the lock: from the grant to the earliest of release call,
// deadline, loss signal and crash. METHOD.md calls it the belief.
func (h *hold) believed() (from, to time.Duration) { return h.Return, h.trusted() }

// lapse is the time at which the holder stops relying on the lock if it does not release it: the earliest of deadline,
// loss signal and crash.
func (h *hold) lapse() time.Duration { return min(h.Until, h.Lost, h.Crashed) }

// trusted is the time until which the holder relies on the lock. If the hold was upgraded, that is the answer to
// the upgrade.
func (h *hold) trusted() time.Duration { return min(h.lapse(), h.back()) }

// back is the time at which a holder gave the lock back: it called Release, or learned that the hold was upgraded.
func (h *hold) back() time.Duration {
	if h.upgraded {
		return h.releaseReturn
	}
	return h.releaseCall
}

// assured is the earliest end of a lease that is not released: T1, the shortest life of a lease, after its last
// proof. A proof is the call of the Acquire or of a successful extension. If extensions overlap, any of them may
// have been the last. An extension without an answer may have shortened the lease, to its own TTL from the time at
// which it took effect.
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

// latest is the latest end of a lease; Forever if it is unknown.
func (r *ruler) latest(h *hold) time.Duration {
	end := history.Forever
	if h.Outcome == history.OK {
		end = plus(h.Return, r.c.rules.Most(h.TTL))
	}
	for _, n := range r.c.extends(h) {
		switch op := &r.c.Ops[n]; op.Outcome {
		case history.OK:
			end = max(end, plus(op.Return, r.c.rules.Most(op.TTL)))
		case history.Unknown:
			end = history.Forever
		}
	}
	return end
}

// granted is the earliest end of the lease that an Acquire began.
func (r *ruler) granted(h *hold) time.Duration {
	if h.TTL > 0 && !r.c.Claims.Begins { // the same result as below, without reading the operation
		return plus(h.Call, r.c.rules.Least(h.TTL))
	}
	return r.promised(r.c.acquire(h))
}

// promised is the earliest end of the lease that a call began: T1, the shortest life of a lease, after the call. If
// the requested TTL is not recorded, or if leases may begin before the call, it is the holder's deadline.
func (r *ruler) promised(op *history.Op) time.Duration { return r.promisedFrom(op, op.Call) }

func (r *ruler) promisedFrom(op *history.Op, call time.Duration) time.Duration {
	end := plus(call, r.c.rules.Least(op.TTL))
	switch {
	case !r.c.Claims.Expires:
	case op.TTL == 0 && op.Until != 0:
		return op.Until
	case r.c.Claims.Begins && op.Kind == history.Acquire && (op.Until == 0 || op.Until == history.Forever):
		return op.Call // the beginning of the lease is unknown
	case r.c.Claims.Begins && op.Until != 0 && op.Until != history.Forever:
		return min(op.Until, end)
	}
	return end
}

// repeated reports whether a release may have been sent twice: the first answer was lost, and the second one says that
// the lock was not held. If messages were only late, the call must have lasted long enough for the sender to give up
// its first request.
func (r *ruler) repeated(told int32) bool {
	op := &r.c.Ops[told]
	links := func(e *history.Effect) bool {
		return e.Hit(history.Links) && (e.Blocks || !e.Known() || op.Latency() >= patientCall)
	}
	return op.Kind == history.Release && r.c.atWork(op.Call, op.Return, links) != nil
}

// slot says when a hold may have begun on the servers, and when it has ended at the earliest.
type slot struct {
	lo, hi time.Duration // it began between lo and hi
	kind   ending
	call   time.Duration // call of the release
	least  time.Duration // T1, counted from the start; Forever if the end does not depend on the start
	most   time.Duration // end of the lease if an extension without an answer has shortened it; else Forever
	over   time.Duration // T1 after the last proof, see assured
}

// slot computes bounds for the start of a hold, see Promise in METHOD.md. Extensions give a lower bound, because the
// lease has to last from each extension to the next, and to a successful release. If coupled is false, the end does not
// depend on the start. The bounds allow for the error of the hold's clock.
func (r *ruler) slot(h *hold, coupled bool) slot {
	s := slot{lo: h.Call, hi: h.Return, kind: h.ending, call: h.releaseCall, over: r.assured(h),
		least: r.c.rules.Least(h.TTL), most: history.Forever}
	need := -history.Forever // the lease lasted at least until this time
	if s.kind == returned {
		need = s.call
	}
	// refreshed: an extension succeeded; unknown: an extension had no answer
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
		need = op.Call // the new lease may count from any moment before the answer
	}
	if s.kind == gone && (r.c.Sites > 1 || s.over > h.releaseReturn || r.repeated(h.Release)) {
		// the release may have had an effect despite its answer "lost": the lease was guaranteed, a few sites had kept
		// the hold, or the release was sent twice
		s.kind = maybe
	}
	if refreshed || r.c.Claims.Begins {
		s.least = history.Forever // the end does not depend on the start
	} else if s.kind == gone && s.least != history.Forever && s.most > h.releaseReturn &&
		r.c.forgot(h, h.releaseReturn) == nil {
		s.hi = min(s.hi, minus(h.releaseReturn, s.least))
	}
	if need > -history.Forever && !unknown {
		s.lo = max(s.lo, minus(need, r.c.rules.Most(h.TTL)))
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
