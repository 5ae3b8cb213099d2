package model

import (
	"slices"
	"time"

	"hammerlock/history"
)

// apply yields the states in which a call has had its effect, not later than the time `by`.
func (s *searcher) apply(c state, n int32, by time.Duration) {
	o := &s.p.Calls[n]
	at := max(c.cur, o.From)
	if at > by || s.early(&c, o) {
		return
	}
	slot, i := int(s.slots[n]), c.find(o.Hold)
	if c = c.until(at); !o.Unanswered || !s.holds[o.Hold].idle || s.deviate {
		c.done.add(slot)
	} else {
		return
	}
	switch o.Kind {
	case Grant:
		s.grant(c, n, at, by)
	case Lost:
		if i < 0 {
			s.yield(c.tell(s.effect(n, at), n, 0))
		} else if s.deviate {
			s.yield(s.wrong(c, n, falseRefusal, -1))
		}
	default:
		if i >= 0 {
			s.own(c, n, i, by)
			return
		}
		if k := c.has(o); k >= 0 && !o.Endless {
			s.yield(c.answers(o, k, by, &s.p.Rules).tell(s.elsewhere(n, at), n, 0))
		}
		if o.Anew {
			s.anew(c, n, by)
		}
		if !s.p.Owned && o.Kind == Release && !o.Unanswered { // success says only that it was called
			s.yield(c.tell(s.elsewhere(n, at), n, 0))
		}
		if s.deviate {
			s.others(c, n, by)
		}
	}
}

func (s *searcher) elsewhere(n int32, at time.Duration) Step {
	step := s.effect(n, at)
	step.Elsewhere = true
	return step
}

// early reports whether a call cannot have had its effect yet, because the grant has not: the holder knew of the grant
// before it called.
func (s *searcher) early(c *state, o *Call) bool {
	g := s.holds[o.Hold].grant
	return o.Kind != Grant && g >= 0 && !s.p.Calls[g].Unanswered && s.p.Calls[g].From < o.From && !s.granted(c, o.Hold)
}

func (s *searcher) wrong(c state, n int32, d deviation, against int32) state {
	step := s.effect(n, c.cur)
	step.Deviation, step.Against = &Deviations[d], against
	cost := d.cost()
	if d == falseRefusal && s.p.Calls[n].Busy {
		cost = oneDeviation
	}
	return c.tell(step, n, cost)
}

// grant begins a hold. If another holder has the lock, the new one replaces it. With several sites, it also yields a
// state in which both have the lock.
func (s *searcher) grant(c state, n int32, at, by time.Duration) {
	o := &s.p.Calls[n]
	l := s.p.begin(o, at, by)
	if s.holds[o.Hold].idle {
		c.cost += unproven
	}
	switch {
	case len(c.held) == 0:
		s.yield(c.alone(l).tell(s.effect(n, at), n, 0))
	case s.deviate:
		against := c.held[len(c.held)-1].hold
		alone := s.wrong(c.alone(l), n, doubleGrant, against)
		alone.last.step.Alone = true
		s.yield(alone)
		if s.p.Sites > 1 && len(c.held) < mostHeld {
			s.yield(s.wrong(c.with(l), n, doubleGrant, against))
		}
	}
}

// anew yields the state in which a re-entry begins its hold again, after the hold was over.
func (s *searcher) anew(c state, n int32, by time.Duration) {
	l := s.p.begin(&s.p.Calls[n], c.cur, by)
	switch {
	case len(c.held) == 0:
		c = c.alone(l).tell(s.effect(n, c.cur), n, 0)
	case s.deviate:
		c = s.wrong(c.alone(l), n, doubleGrant, c.held[len(c.held)-1].hold)
		c.last.step.Alone = true
	default:
		return
	}
	c.last.step.Anew = true
	s.yield(c)
}

// own yields the states after a call whose hold has the lock. A window may have made the hold's lease longer.
func (s *searcher) own(c state, n int32, i int, by time.Duration) {
	o, l := &s.p.Calls[n], c.held[i]
	if w, place := s.stretched(&l, c.cur); w != nil && !o.Endless {
		x := c.late(i, w.To).tell(Step{At: c.cur, Event: Stretched, Hold: o.Hold, Window: place, Planned: w.Planned,
			Against: -1}, -1, w.cost())
		s.yield(s.used(x, o, x.held[i], i, by).tell(s.effect(n, c.cur), n, 0))
	}
	if o.looks(c.cur) > s.p.over(&l) {
		if s.deviate && !o.Unanswered && !o.Endless {
			l.late = true
			s.yield(s.wrong(s.used(c, o, l, i, by), n, ttlTooLong, -1))
		}
		return // a key without expiry cannot be seen after its end
	}
	if o.Endless && !l.late {
		if l.late = true; s.deviate {
			s.yield(s.wrong(s.used(c, o, l, i, by), n, ttlTooLong, -1))
		}
		return
	}
	used := s.used(c, o, s.p.alive(l, c.cur, by), i, by)
	s.yield(used.tell(s.effect(n, c.cur), n, 0))
	switch kept := c.with(s.p.alive(l, c.cur, by)); {
	case o.Unanswered:
	case o.Kind == Release && !s.p.Owned:
		s.yield(kept.tell(s.elsewhere(n, c.cur), n, 0))
	case o.Kind == Release && s.deviate:
		s.yield(s.wrong(kept, n, leak, -1))
	case o.Kind == Extend && s.deviate:
		s.yield(s.wrong(kept, n, falseExtension, -1))
	}
}

// again yields the states in which a release has a second effect. The release took so long that it may have been sent
// twice, and the second one freed the lock of another holder.
func (s *searcher) again(c state, n int32, by time.Duration) {
	o := &s.p.Calls[n]
	if s.p.Patient == 0 || o.Kind != Release || o.Unanswered || o.To-o.From < s.p.Patient || c.cur > by {
		return
	}
	for i := range c.held {
		if l := &c.held[i]; l.hold != o.Hold && c.cur <= s.p.over(l) {
			x := s.wrong(c.without(i), n, foreignRelease, l.hold)
			x.last.step.Again = true
			x.cost += onePrior
			s.yield(x)
		}
	}
}

// used returns the state after a call of a holder whose lease is alive.
func (s *searcher) used(c state, o *Call, l lease, i int, by time.Duration) state {
	switch o.Kind {
	case Extend:
		if o.Unanswered {
			by = min(by, s.p.over(&l))
		}
		return c.with(s.p.begin(o, c.cur, by))
	case Release:
		return c.without(i)
	}
	l.hi = min(l.hi, by)
	return c.with(l)
}

// others yields the states after an extension, release or sighting whose hold no longer has the lock. Each of them
// needs a deviation.
func (s *searcher) others(c state, n int32, by time.Duration) {
	o, against := &s.p.Calls[n], int32(-1)
	if len(c.held) > 0 {
		against = c.held[len(c.held)-1].hold
	}
	if o.Kind == Seen {
		s.seen(c, n, against, by)
		return
	}
	if o.Kind == Extend {
		if l := s.p.begin(o, c.cur, by); s.granted(&c, o.Hold) {
			s.yield(s.wrong(c.alone(l), n, silentReacquire, against))
		}
		if x := s.wrong(c, n, falseExtension, against); !o.Unanswered {
			if !s.granted(&c, o.Hold) {
				x.cost += unproven
			}
			s.yield(x)
		}
		return
	}
	if o.ID == 0 {
		return // nothing shows that it was called
	}
	for i := range c.held {
		if c.cur <= s.p.over(&c.held[i]) {
			x := s.wrong(c.without(i), n, foreignRelease, c.held[i].hold)
			if o.Unanswered {
				x.cost += unheard
			}
			s.yield(x)
		}
	}
	if o.Unanswered || !s.p.Owned {
		return
	}
	if s.givenBack(n) {
		s.yield(s.wrong(c, n, doubleRelease, against))
	} else {
		s.yield(s.wrong(c, n, falseRelease, against))
	}
}

// seen yields the states after a sighting of a key whose hold no longer has the lock. Up to a time it shows that the
// lock was granted twice, and after that time it is a phantom.
func (s *searcher) seen(c state, n, against int32, by time.Duration) {
	o := &s.p.Calls[n]
	l := lease{o.Hold, c.cur, by, o.TTL, false}
	if g := s.holds[o.Hold].grant; g >= 0 {
		l.ttl = s.p.Calls[g].TTL
	}
	if end := s.shared(&c, o); c.cur <= end {
		l.hi = min(by, end)
		x := s.wrong(c.alone(l), n, doubleGrant, against)
		x.cost += (Deviations[phantom].prior - Deviations[doubleGrant].prior) * onePrior // as unusual as a phantom
		x.last.step.Alone = true
		s.yield(x)
		if by <= end {
			return
		}
		c = c.until(end + 1)
		l.lo, l.hi = c.cur, by
	}
	s.yield(s.wrong(c.alone(l), n, phantom, against))
}

// shared returns the time up to which a sighting of a key shows two holders; -1 if it does not. Another hold has the
// lock, was certainly granted, and was not given back. The key's hold was granted and not given back either, and until
// that time its lease cannot be over.
func (s *searcher) shared(c *state, o *Call) time.Duration {
	if !s.granted(c, o.Hold) || s.given(c, o.Hold) || !slices.ContainsFunc(c.held, func(l lease) bool {
		g := s.holds[l.hold].grant
		return g >= 0 && !s.p.Calls[g].Unanswered && !s.given(c, l.hold)
	}) {
		return -1
	}
	l := s.lastLease(c, o.Hold, history.Forever)
	return plus(l.lo, s.p.Least(l.ttl))
}

// givenBack reports whether a release of the same hold succeeded before a call began.
func (s *searcher) givenBack(n int32) bool {
	o := &s.p.Calls[n]
	h := &s.holds[o.Hold]
	for i := h.first; i < s.now; i++ {
		v := s.events[i]
		if v.call == n {
			return false
		}
		if c := &s.p.Calls[v.call]; c.Hold == o.Hold && v.end && c.Kind == Release {
			return true
		}
	}
	return false
}
