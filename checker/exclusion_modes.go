package checker

import (
	"cmp"
	"slices"
	"time"

	"hammerlock/history"
)

// A hold is exclusive, or has some of the lock's permits. Each reader has one permit, and any number of readers may
// hold the lock. A semaphore has as many permits as it claims.

// semaphore does the work of the method pairs for a lock with permits: it compares sums of permits. It finds grants
// that contradict the servers' promises, and then holders that relied on the lock for too long.
func (x *examiner) semaphore(holds []int32) {
	s, groups := x.sweeper, x.c.groups(holds)
	for _, g := range groups {
		s.scope = g.scope
		s.crowds(g.holds, s.guaranteed, x.overdrawn)
		s.crowded(g.holds, x.overdrawn)
		s.crowds(g.holds, s.believes, x.overbelieved)
	}
	if s.scope = asRead; len(groups) > 1 {
		s.crowds(holds, s.believes, func(n int32, _ []timed) {
			if !x.blamed[n] {
				x.misses["possible"]++
			}
		})
	}
}

// believes is the belief of a holder, shortened at both ends by the possible error of its clock. If shortened beliefs
// have a moment in common, the beliefs overlap whatever the clocks show.
func (s *sweeper) believes(h *hold) (from, to time.Duration) {
	from, to = h.believed()
	return from + s.half(h), minus(to, s.half(h))
}

// guaranteed is the time in which a hold certainly existed: from its latest possible start to its earliest
// possible end.
func (s *sweeper) guaranteed(h *hold) (from, to time.Duration) {
	t := s.slot(h, false)
	return t.hi, t.end(t.lo)
}

// crowds runs the function found for each hold at whose beginning more permits are taken than exist. The argument
// others has the other holds at that time.
func (s *sweeper) crowds(holds []int32, span func(*hold) (from, to time.Duration),
	found func(n int32, others []timed)) {
	var held heap
	out := 0
	s.inOrder(holds, func(h *hold) (timed, bool) {
		from, to := span(h)
		return timed{at: from, slot: slot{hi: to}}, h.Outcome == history.OK && from < to
	}, func(t *timed) {
		for ; len(held) > 0 && held[0].at <= t.at; held.pop() {
			out -= s.c.weight(&s.c.holds[held[0].hold])
		}
		if out += s.c.weight(&s.c.holds[t.hold]); out > s.c.Claims.Permits {
			found(t.hold, held)
		}
		held.push(timed{at: t.slot.hi, hold: t.hold})
	})
}

// crowded runs the function found for each hold that an answer proves for a moment during which the promises to other
// holds left too few permits. The argument others has these other holds. The moments are those of the function moments,
// and releases that succeeded after one without an answer.
func (s *sweeper) crowded(holds []int32, found func(n int32, others []timed)) {
	var sure []timed
	points := s.moments(holds, false)
	for _, n := range holds {
		for _, i := range s.c.sentAgain[n] {
			if h, op := &s.c.holds[n], &s.c.Ops[i]; s.c.Claims.Owned && op.Outcome == history.OK &&
				h.answer == history.Unknown {
				points = append(points, moment{op.Call - s.half(h), plus(op.Return, s.half(h)), n})
			}
		}
	}
	if len(points) == 0 {
		return
	}
	slices.SortFunc(points, func(a, b moment) int { return cmp.Compare(a.from, b.from) })
	s.inOrder(holds, func(h *hold) (timed, bool) {
		from, to := s.guaranteed(h)
		return timed{at: from, slot: slot{hi: to}}, h.Outcome == history.OK && from < to
	}, func(t *timed) { sure = append(sure, *t) })
	var held heap
	at := 0
	for _, p := range points {
		for ; at < len(sure) && sure[at].at <= p.from; at++ {
			held.push(timed{at: sure[at].slot.hi, hold: sure[at].hold})
		}
		for ; len(held) > 0 && held[0].at <= p.from; held.pop() {
		}
		others, out := []timed(nil), s.c.weight(&s.c.holds[p.hold])
		for _, o := range held {
			if o.at > p.to && o.hold != p.hold {
				others, out = append(others, o), out+s.c.weight(&s.c.holds[o.hold])
			}
		}
		if out > s.c.Claims.Permits {
			found(p.hold, others)
		}
	}
}

// overdrawn blames a hold that was granted although too many permits were taken. If servers forgot some holds, that
// explains the grant only if the other holds leave enough permits.
func (x *examiner) overdrawn(n int32, others []timed) {
	if x.blamed[n] {
		return
	}
	x.blamed[n] = true
	kept, out, by := []timed(nil), x.c.weight(&x.c.holds[n]), x.c.knownBy(&x.c.holds[n])
	f := finding{cause: history.ForeignRelease, pair: pair{-1, n}, op: -1}
	for _, o := range others {
		if w := x.c.forgot(&x.c.holds[o.hold], by); w == nil {
			kept, out = append(kept, o), out+x.c.weight(&x.c.holds[o.hold])
		} else if f.why == nil {
			f.pair.first, f.why = o.hold, w
		}
	}
	fits := out <= x.c.Claims.Permits
	if fits {
		kept = others
	}
	far := slices.MaxFunc(kept, func(a, b timed) int { return cmp.Compare(a.at, b.at) })
	// since an earlier wrong release, there may be one permit too many
	f.op = x.told.freed(x.c, -history.Forever, by)
	switch {
	case f.op >= 0:
		f.pair.first, f.why = far.hold, nil
	case fits:
		f.cause, f.op = history.ServiceLoss, f.why.op
	default:
		f = x.broken(pair{far.hold, n})
	}
	x.add(f)
}

// others lists further holds that were relied on when the second hold of a pair was granted. The list ends as soon as
// its holds and the pair have more permits than exist.
func (c *Case) others(p pair) (list []int32) {
	last := &c.holds[p.second]
	out := c.weight(&c.holds[p.first]) + c.weight(last)
	for _, n := range c.byCall {
		h := &c.holds[n]
		if out > c.Claims.Permits {
			break
		}
		if n == p.first || n == p.second || h.Key != last.Key || h.Outcome != history.OK {
			continue
		}
		if from, to := h.believed(); from <= last.Return && last.Return < to {
			list, out = append(list, n), out+c.weight(h)
		}
	}
	return list
}

// overbelieved handles a moment at which holders relied on more permits than exist. It blames the holder whose lease
// ended first.
func (x *examiner) overbelieved(n int32, others []timed) {
	if x.blamed[n] {
		return
	}
	x.blamed[n] = true
	first := slices.MinFunc(others, func(a, b timed) int {
		return cmp.Compare(x.sweeper.assured(&x.c.holds[a.hold]), x.sweeper.assured(&x.c.holds[b.hold]))
	})
	x.collision(pair{first.hold, n})
}
