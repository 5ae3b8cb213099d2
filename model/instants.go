package model

import (
	"cmp"
	"slices"
	"time"

	"hammerlock/history"
)

// finish sorts the steps by their instants. It also adds steps for refused calls of holds that nothing shows to have
// been granted. These calls need no state.
func (e *explainer) finish() {
	if e.b.Instants {
		e.settle(0)
		for _, v := range e.events {
			c := &e.p.Calls[v.call]
			if v.end && e.holds[c.Hold].idle && !e.done[v.call] {
				e.note(v.call, c.From)
			}
		}
	}
	slices.SortStableFunc(e.steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	e.story.Steps = e.steps
}

// settle gives each step after a position its earliest instant within the bounds of all leases. If an answer shows
// that a lease was still alive late, the lease must have begun late.
func (e *explainer) settle(from int) {
	least := make([]time.Duration, len(e.steps)-from)
	for again := true; again; {
		again = e.pass(from, least)
	}
}

// pass goes through the steps once. It returns true if a lease must have begun later than assumed.
func (e *explainer) pass(from int, least []time.Duration) (again bool) {
	// By hold: begun has the step that began its lease, loose says that the lease may last too long, and last has its
	// last instant.
	begun, loose := map[int32]int{}, map[int32]bool{}
	last := map[int32]time.Duration{}
	now := -history.Forever
	for i := from; i < len(e.steps); i++ {
		s, call := &e.steps[i], (*Call)(nil)
		if n := e.links[i]; n >= 0 {
			call = &e.p.Calls[n]
		}
		b, known := begun[s.Hold]
		low := least[i-from]
		switch {
		case call != nil:
			low = max(low, call.From, now)
		case s.Event == LeaseEnd && known && s.Deviation == nil:
			low = max(low, last[s.Hold], plus(e.began(b), e.least(b)))
		case s.Event == Restored:
			s.Began, low = max(s.Began, low), max(e.p.Windows[s.Window].From, now)
		case s.Window >= 0 && s.Event != Stretched:
			low = max(low, e.p.Windows[s.Window].From, now)
		default:
			low = max(low, now)
		}
		if before, ok := last[s.Hold]; ok {
			low = max(low, before)
		}
		if s.At, last[s.Hold] = low, low; call == nil || call.Kind != Lost {
			now = max(now, low) // a refusal stays true from then on, so it delays no other step
		}
		uses := s.Event == LeaseEnd && s.Deviation == nil || call != nil && usesLease(s, call)
		if uses && known && !loose[s.Hold] {
			found := low
			if call != nil {
				found = call.looks(low)
			}
			if need := found - e.most(b); found > plus(e.began(b), e.most(b)) && need > least[b-from] {
				least[b-from], again = need, true
			}
		}
		if s.Event == Stretched || s.Deviation == &Deviations[ttlTooLong] {
			loose[s.Hold] = true
		}
		if call != nil && s.begins() {
			begun[s.Hold], loose[s.Hold] = i, call.Open
		} else if s.Event == Restored {
			begun[s.Hold], loose[s.Hold] = i, false
		}
	}
	return again
}

// begins reports whether the call's effect begins a lease.
func (s *Step) begins() bool {
	return s.Deviation == &Deviations[phantom] || s.Deviation == &Deviations[doubleGrant] ||
		!s.Elsewhere && s.Deviation != &Deviations[falseExtension] && (s.Kind == Grant || s.Kind == Extend)
}

// usesLease reports whether a step shows that its hold's lease was alive.
func usesLease(s *Step, call *Call) bool {
	if call.Endless {
		return s.Deviation == &Deviations[ttlTooLong]
	}
	return s.Deviation == nil && !s.Elsewhere && !s.Anew && call.Kind != Grant && call.Kind != Lost
}

// began is the time at which a step's lease began.
func (e *explainer) began(step int) time.Duration {
	if s := &e.steps[step]; s.Event == Restored {
		return s.Began
	}
	return e.steps[step].At
}

// least is the shortest life of the lease that began with a step. With several sites, some may have begun it earlier.
func (e *explainer) least(step int) time.Duration {
	if e.steps[step].Event == Restored {
		return e.p.Least(e.steps[step].TTL)
	}
	c := &e.p.Calls[e.links[step]]
	least := e.p.Least(e.ttl(c))
	if e.p.Sites > 1 && least != history.Forever {
		return max(c.From+least-e.steps[step].At, 0)
	}
	return least
}

// most is the longest life of the lease that began with a step.
func (e *explainer) most(step int) time.Duration {
	if e.steps[step].Event == Restored {
		return e.p.Most(e.steps[step].TTL)
	}
	return e.p.Most(e.ttl(&e.p.Calls[e.links[step]]))
}

// ttl returns the length of the lease that begins with a call. For a key that was seen after its hold had ended, it is
// the lease of the grant.
func (e *explainer) ttl(c *Call) time.Duration {
	if g := e.holds[c.Hold].grant; c.Kind == Seen && g >= 0 {
		return e.p.Calls[g].TTL
	}
	return c.TTL
}
