package checker

import (
	"cmp"
	"slices"
	"time"

	"hammerlock/history"
)

// pair is a hold and an earlier one that it collides with.
type pair struct{ first, second int32 }

// sweeper finds the pairs of holds of one key that collide. Its arrays are used for one key after another.
type sweeper struct {
	ruler
	order []stamp // the holds by the start of what is compared
	queue []timed // those that may yet be overtaken by a later call
	slack time.Duration
}

// timed is a hold with what is compared, and when that begins.
type timed struct {
	at   time.Duration
	hold int32
	slot slot
}

// inOrder visits the holds that measure keeps in the order in which what it measures begins. The holds stand in the
// order of their calls, and nothing begins before its call: few have to be kept, so that time and memory hardly
// depend on how many there are.
func (s *sweeper) inOrder(holds []int32, measure func(h *hold) (t timed, keep bool), visit func(t *timed)) {
	s.queue = s.queue[:0]
	for _, n := range holds {
		h := &s.c.holds[n]
		for call := h.Call - s.half; len(s.queue) > 0 && s.queue[0].at < call; {
			visit(&s.queue[0])
			s.pop()
		}
		if t, keep := measure(h); keep {
			t.hold = n
			s.push(t)
		}
	}
	for len(s.queue) > 0 {
		visit(&s.queue[0])
		s.pop()
	}
}

func (t *timed) before(u *timed) bool { return t.at < u.at || t.at == u.at && t.hold < u.hold }

// push adds to the queue, a heap of our own: with container/heap a sweep takes 25 % longer, and the exclusion checker 20 %.
func (s *sweeper) push(t timed) {
	s.queue = append(s.queue, t)
	q := s.queue
	for i := len(q) - 1; i > 0; {
		up := (i - 1) / 2
		if !q[i].before(&q[up]) {
			return
		}
		q[i], q[up] = q[up], q[i]
		i = up
	}
}

func (s *sweeper) pop() {
	last := len(s.queue) - 1
	s.queue[0] = s.queue[last]
	s.queue = s.queue[:last]
	q := s.queue
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if q[child].before(&q[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
}

func newSweeper(c *Case) *sweeper {
	s := &sweeper{ruler: ruler{c: c}}
	if c.Processes > 1 {
		s.slack = c.Bounds.Slack
	}
	return s
}

// reach is a hold whose interval reached furthest of all so far.
type reach struct {
	hold     int32
	process  int16
	from, to time.Duration
}

// beliefs calls found for each hold whose holder believed in it while an earlier one still believed in its own,
// with the one that believed longest, and tells whether that is certain in spite of the processes' clocks.
// One sort and one sweep: O(n log n) at worst, exact within a process.
func (s *sweeper) beliefs(holds []int32, found func(p pair, certain bool)) {
	far := frontier{best: reach{hold: -1}, other: reach{hold: -1}, slack: s.slack}
	s.inOrder(holds, func(h *hold) (timed, bool) {
		from, to := h.believed()
		return timed{at: from, slot: slot{hi: to}}, h.Outcome == history.OK && from < to
	}, func(t *timed) {
		now := reach{t.hold, s.c.holds[t.hold].Process, t.at, t.slot.hi}
		if first, certain := far.collide(now); first >= 0 {
			found(pair{first, t.hold}, certain)
		}
		far.add(now)
	})
}

// frontier is how far the beliefs of a key reach so far, in the order in which they begin.
type frontier struct {
	best, other reach // other is the one of another process that reaches furthest
	slack       time.Duration
}

// add takes a belief in.
func (z *frontier) add(now reach) {
	switch {
	case z.best.hold < 0 || now.process == z.best.process:
		if z.best.hold < 0 || now.to > z.best.to {
			z.best = now
		}
	case now.to > z.best.to:
		z.best, z.other = now, z.best
	case z.other.hold < 0 || now.to > z.other.to:
		z.other = now
	}
}

// collide finds which of the two that reach furthest overlaps the new one. Times of different processes may be off
// by the slack in either direction.
func (z *frontier) collide(now reach) (first int32, certain bool) {
	first = -1
	for _, r := range [...]reach{z.best, z.other} {
		if r.hold < 0 || now.from >= r.to {
			continue
		}
		if r.process == now.process || now.from+z.slack < r.to && r.from+z.slack < now.to {
			return r.hold, true
		}
		if first < 0 {
			first = r.hold
		}
	}
	return first, false
}

// losses calls found for each hold that the servers cannot have granted while they kept every promise to the
// earlier ones: algorithm L of the method. Holds whose lease may have been over before the answer arrived promise
// nothing and are left out, so that the order of all others is forced: O(n log n) at worst, and exact if there are none.
func (s *sweeper) losses(holds []int32, coupled bool, found func(p pair)) {
	now, last := -history.Forever, int32(-1)
	s.inOrder(holds, func(h *hold) (timed, bool) {
		t := s.slot(h, coupled)
		return timed{at: t.hi, slot: t}, h.Outcome == history.OK && t.end(t.lo) > t.hi
	}, func(o *timed) {
		t := &o.slot
		x := max(t.lo, now)
		if x > t.hi {
			found(pair{last, o.hold})
			x = t.lo // go on as if only the newer one existed, so that one loss counts once
		}
		now, last = t.end(x), o.hold
	})
}

// moment is a time in which a hold surely existed at some instant.
type moment struct {
	from, to time.Duration
	hold     int32
}

// moments lists those of the holds that losses leaves out: of an acquire without an answer, when a release of it
// succeeded; of one whose lease may have been over before it was answered, all of the acquire.
func (s *sweeper) moments(holds []int32, coupled bool) (list []moment) {
	for _, n := range holds {
		h := &s.c.holds[n]
		if h.Outcome != history.OK {
			if op := s.proof(h); op != nil {
				list = append(list, moment{op.Call - s.half, plus(op.Return, s.half), n})
			}
		} else if t := s.slot(h, coupled); t.end(t.lo) <= t.hi {
			list = append(list, moment{t.lo, t.hi, n})
		}
	}
	slices.SortFunc(list, func(a, b moment) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.hold, b.hold)) })
	return list
}

// proof is the release that shows that an acquire without an answer had been granted, nil if there is none.
func (s *sweeper) proof(h *hold) *history.Op {
	if h.Release >= 0 && s.c.Ops[h.Release].Outcome == history.OK {
		return &s.c.Ops[h.Release]
	}
	return nil
}

// proven calls found for each hold that losses leaves out and that is known to have existed in a moment in which the
// servers had promised the lock to another. What an acquire without an answer did that is not proved cannot be known;
// that it did nothing is always possible, so it is dropped.
func (s *sweeper) proven(holds []int32, coupled bool, found func(p pair)) {
	points := s.moments(holds, coupled)
	if len(points) == 0 {
		return
	}
	s.order = s.order[:0]
	for _, n := range holds {
		if h := &s.c.holds[n]; h.Outcome == history.OK {
			t := s.slot(h, coupled)
			s.order = append(s.order, stamp{t.hi, n})
		}
	}
	slices.SortFunc(s.order, stamp.compare)
	at, best, end := 0, int32(-1), -history.Forever
	for _, p := range points {
		for ; at < len(s.order) && s.order[at].at < p.from; at++ {
			t := s.slot(&s.c.holds[s.order[at].index], coupled)
			if e := t.end(t.lo); e > end {
				best, end = s.order[at].index, e
			}
		}
		if best >= 0 && p.to < end {
			found(pair{best, p.hold})
		}
	}
}

// overruns calls found for each hold whose holder stored after it had ceased to believe, with a hold that was
// granted in between and not yet over when the first one's visit was at work; -1 if nobody's was.
func (s *sweeper) overruns(holds []int32, found func(p pair)) {
	if !slices.ContainsFunc(holds, func(n int32) bool { return s.c.holds[n].late() }) {
		return
	}
	s.order = s.order[:0]
	for _, n := range holds {
		h := &s.c.holds[n]
		if from, to := h.believed(); h.Outcome == history.OK && from < to {
			s.order = append(s.order, stamp{from, n})
		}
	}
	slices.SortFunc(s.order, stamp.compare)
	for _, n := range holds {
		if h := &s.c.holds[n]; h.late() {
			found(pair{n, s.meets(n, h)})
		}
	}
}

// given is until when a hold was its holder's, as far as it knew: a crash does not end that.
func (h *hold) given() time.Duration { return min(h.Until, h.Lost, h.releaseCall) }

// late tells whether a holder stored although it knew, or could have known, that the lock was no longer its own.
func (h *hold) late() bool {
	return h.Outcome == history.OK && h.stored != history.Forever && h.stored > h.given()
}

// meets finds a hold that was granted after another's belief had ended and before it stored.
func (s *sweeper) meets(n int32, h *hold) int32 {
	end, store := h.given(), h.stored
	begin := end
	if h.Uses[0] >= 0 {
		begin = max(begin, s.c.Ops[h.Uses[0]].Call)
	}
	at, _ := slices.BinarySearchFunc(s.order, end, func(o stamp, t time.Duration) int {
		return stamp{o.at, 0}.compare(stamp{t, 0})
	})
	for ; at < len(s.order) && s.order[at].at < store; at++ {
		o := &s.c.holds[s.order[at].index]
		from, to := o.believed()
		slack := s.c.slack(h.Process, o.Process)
		if s.order[at].index != n && from+slack < store && begin+slack < to {
			return s.order[at].index
		}
	}
	return -1
}
