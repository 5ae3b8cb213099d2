package checker

import (
	"slices"
	"time"

	"hammerlock/history"
)

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
