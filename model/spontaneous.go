package model

import (
	"slices"
	"time"
)

// needed reports whether some open call is possible only after a hold has ended.
func (s *searcher) needed(c *state, hold int32) bool {
	if len(s.wins) > 0 && (!s.p.Single || s.restores()) && s.expected(c, hold) {
		return true // another server may give the later answers, or this one may get the hold back
	}
	return slices.ContainsFunc(s.open, func(m int32) bool {
		if m < 0 || c.done.has(int(s.slots[m])) {
			return false
		}
		o := &s.p.Calls[m]
		ends := o.Kind == Lost || !s.p.Owned && o.Kind == Release || s.deviate || !s.p.Single && len(s.wins) > 0
		return o.Kind == Grant || o.Anew || o.Hold == hold && ends
	})
}

// restores reports whether a window may bring lost data back.
func (s *searcher) restores() bool {
	return slices.ContainsFunc(s.wins, func(n int32) bool { return s.explainer.wins.list[n].brings() })
}

// spontaneous yields the states after events that need no call, such as the end of a lease, not later than the
// time `by`.
func (s *searcher) spontaneous(c state, by time.Duration) {
	for i := range c.held {
		l := &c.held[i]
		if !s.needed(&c, l.hold) {
			continue
		}
		if !s.lapses(c, i, by) && s.deviate {
			step := Step{At: c.cur, Event: LeaseEnd, Hold: l.hold, Window: -1, Against: -1}
			step.Deviation = &Deviations[prematureLoss]
			s.yield(c.without(i).tell(step, -1, prematureLoss.cost()))
		}
		for _, n := range s.wins {
			s.forget(c, i, n, by)
		}
	}
	for _, n := range s.wins {
		s.restore(c, n, by)
	}
}

// lapses yields the state in which a lease has ended, as early as possible. It returns false if the lease cannot end
// before the time `by`.
func (s *searcher) lapses(c state, i int, by time.Duration) bool {
	l := &c.held[i]
	end := max(c.cur, plus(l.lo, s.p.Least(l.ttl)))
	if end <= by {
		step := Step{At: end, Event: LeaseEnd, Hold: l.hold, Window: -1, Against: -1}
		s.yield(c.without(i).until(end).tell(step, -1, 0))
	}
	return end <= by
}

// forget yields the state in which servers forget a hold in a window.
func (s *searcher) forget(c state, i int, n int32, by time.Duration) {
	w, hold := &s.explainer.wins.list[n], c.held[i].hold
	at := max(c.cur, w.From)
	if !w.Forgets || slices.Contains(s.p.Holds[hold].Survives, s.explainer.wins.place[n]) || at > min(by, w.To) {
		return
	}
	step := Step{At: at, Event: Forgotten, Hold: hold, Window: s.explainer.wins.place[n], Planned: w.Planned,
		Against: -1}
	expected := s.expected(&c, hold)
	s.yield(c.forgets(i, w, by, expected, &s.p.Rules).until(at).tell(step, -1, w.cost()))
	// another server may still have it
	if late, place := s.stretched(&c.held[i], at); late != nil && !s.p.Single && expected {
		c = c.late(i, min(late.To, by)).tell(Step{At: c.cur, Event: Stretched, Hold: hold, Window: place,
			Planned: late.Planned, Against: -1}, -1, late.cost())
		s.yield(c.forgets(i, w, by, expected, &s.p.Rules).until(at).tell(step, -1, w.cost()))
	}
}

// closes adds states when a window ends: states in which servers forgot or restored a hold in that window. No answer
// has needed these states yet, but a later one may. Before servers forgot a hold, an open call may have granted or
// extended it, and another lease may have ended.
func (s *searcher) closes(list []state, n int32) []state {
	w := &s.explainer.wins.list[n]
	if !w.Forgets && !w.brings() {
		return list
	}
	s.tried, s.todo = newFront(&s.free), s.todo[:0]
	for _, c := range list {
		for i := range c.held {
			s.lapses(c, i, w.To)
		}
	}
	for _, c := range slices.Concat(list, s.todo) {
		for _, m := range s.open {
			if m < 0 || c.done.has(int(s.slots[m])) {
				continue
			}
			if kind := s.p.Calls[m].Kind; kind == Grant || kind == Extend {
				s.apply(c, m, w.To)
			}
		}
	}
	before := slices.Concat(list, s.todo)
	s.tried, s.todo = newFront(&s.free), s.todo[:0]
	for _, c := range before {
		s.looked++
		for i := range c.held {
			s.forget(c, i, n, w.To)
		}
		s.restore(c, n, w.To)
	}
	out := newFront(&s.free)
	for _, c := range append(list, s.todo...) {
		out.add(c)
	}
	s.todo = s.todo[:0]
	return out.states
}

// expected reports whether a coming answer shows that a hold has the lock.
func (s *searcher) expected(c *state, hold int32) bool {
	return s.holds[hold].proof > s.now || slices.ContainsFunc(s.open, func(m int32) bool {
		if m < 0 || c.done.has(int(s.slots[m])) {
			return false
		}
		o := &s.p.Calls[m]
		return o.Hold == hold && o.Kind != Grant && o.Kind != Lost && !o.Unanswered
	})
}

// restore yields the states in which a hold that was over comes back in a window, if coming answers need it. The
// restored hold replaces the copy of it that another server may have had.
func (s *searcher) restore(c state, n int32, by time.Duration) {
	w := &s.explainer.wins.list[n]
	at := max(c.cur, w.From)
	if !w.brings() || at > min(by, w.To) {
		return
	}
	for _, hold := range s.active {
		if c.find(hold) >= 0 || !s.granted(&c, hold) || !s.expected(&c, hold) ||
			!w.Restores && s.given(&c, hold) {
			continue
		}
		l := s.lastLease(&c, hold, min(by, w.To))
		l.late = l.late || w.Late
		step := Step{At: at, Event: Restored, Hold: hold, Window: s.explainer.wins.place[n], Against: -1,
			Planned: w.Planned, Began: l.lo, TTL: l.ttl}
		x := c.alone(l).until(at)
		x.elsewhere = slices.DeleteFunc(slices.Clone(x.elsewhere), func(g gone) bool { return g.hold == hold })
		s.yield(x.tell(step, -1, w.cost()))
	}
}

func (s *searcher) granted(c *state, hold int32) bool {
	h := &s.holds[hold]
	if h.grant < 0 {
		return false
	}
	if h.answered >= 0 && h.answered < s.now {
		return true
	}
	slot := int(s.slots[h.grant])
	return slot < len(s.open) && s.open[slot] == h.grant && c.done.has(slot)
}

// lastLease returns the last lease of a hold, as far as the hold's calls have had their effect.
func (s *searcher) lastLease(c *state, hold int32, by time.Duration) lease {
	g := &s.p.Calls[s.holds[hold].grant]
	l := lease{hold, g.From, min(g.To, by), g.TTL, g.Open}
	last := time.Duration(0)
	for i := s.holds[hold].first; i <= s.now; i++ {
		v := s.events[i]
		o := &s.p.Calls[v.call]
		if o.Hold != hold || o.Kind != Extend || o.Unanswered || v.end || o.To <= last || !s.over(c, v.call) {
			continue
		}
		last, l.hi, l.ttl, l.late = o.To, min(o.To, by), o.TTL, o.Open
	}
	return l
}

// given reports whether a hold has been released in state c.
func (s *searcher) given(c *state, hold int32) bool {
	for i := s.holds[hold].first; i <= s.now; i++ {
		if v := s.events[i]; s.p.Calls[v.call].Hold == hold && s.p.Calls[v.call].Kind == Release && s.over(c, v.call) {
			return true
		}
	}
	return false
}

// over reports whether an answered call has had its effect in a state.
func (s *searcher) over(c *state, n int32) bool {
	slot := int(s.slots[n])
	return slot >= len(s.open) || s.open[slot] != n || c.done.has(slot)
}

// stretched returns the cheapest window that may have made a lease longer, and its index in Page.Windows. The window
// is nil if none exists, or if the lease already lasts too long.
func (s *searcher) stretched(l *lease, at time.Duration) (w *Window, place int32) {
	for _, n := range s.wins {
		x := &s.explainer.wins.list[n]
		if x.Late && !l.late && x.From <= min(at, s.p.over(l)) && x.To >= l.lo && (w == nil || x.cost() < w.cost()) {
			w, place = x, s.explainer.wins.place[n]
		}
	}
	return w, place
}
