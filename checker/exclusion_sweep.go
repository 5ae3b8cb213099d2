package checker

import (
	"cmp"
	"slices"
	"time"

	"hammerlock/history"
)

// sweeper finds the pairs of holds of a key that collide. Its arrays are reused from key to key.
type sweeper struct {
	ruler
	order []stamp // holds, sorted by the start of their intervals
	queue heap    // holds that are not visited yet, because the interval of a later hold may start earlier
	// late is filled by the method losses. It maps a hold that must have begun and ended late to the hold that
	// delayed it.
	late  map[int32]int32
	until []time.Duration // until[i] is the latest end of the beliefs of order[0] to order[i]
}

// timed is a hold with the interval that is compared; at is the start of the interval.
type timed struct {
	at   time.Duration
	hold int32
	slot slot
}

// inOrder visits holds in the order in which their intervals start. The function measure returns the interval of a
// hold. Holds are sorted by their calls, and no interval starts before the call, so the queue stays short.
func (s *sweeper) inOrder(holds []int32, measure func(h *hold) (t timed, keep bool), visit func(t *timed)) {
	s.queue = s.queue[:0]
	for _, n := range holds {
		h := &s.c.holds[n]
		for call := h.Call - s.c.Bounds.Slack; len(s.queue) > 0 && s.queue[0].at < call; {
			visit(&s.queue[0])
			s.queue.pop()
		}
		if t, keep := measure(h); keep {
			t.hold = n
			s.queue.push(t)
		}
	}
	for len(s.queue) > 0 {
		visit(&s.queue[0])
		s.queue.pop()
	}
}

func (t *timed) before(u *timed) bool { return t.at < u.at || t.at == u.at && t.hold < u.hold }

// heap has the earliest entry first. It replaces container/heap, with which a sweep takes 25 % longer.
type heap []timed

func (p *heap) push(t timed) {
	q := append(*p, t)
	*p = q
	for i := len(q) - 1; i > 0; {
		up := (i - 1) / 2
		if !q[i].before(&q[up]) {
			return
		}
		q[i], q[up] = q[up], q[i]
		i = up
	}
}

func (p *heap) pop() {
	q := *p
	last := len(q) - 1
	q[0] = q[last]
	q = q[:last]
	*p = q
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

func newSweeper(c *Case) *sweeper { return &sweeper{ruler: ruler{c: c}} }

// reach is a hold whose interval ends later than the intervals of all earlier holds.
type reach struct {
	hold     int32
	process  int16
	from, to time.Duration
}

// beliefs runs the function found for each hold whose holder began to rely on the lock while an earlier holder still
// did. The pair has the earlier hold and this one. If there are several earlier holds, it takes the one on which a
// holder relied longest. The argument certain says that the two overlap in spite of clock differences. The result is
// exact within a process.
func (s *sweeper) beliefs(holds []int32, found func(p pair, certain bool)) {
	far := newFronts(&s.c.Bounds.Agreement)
	s.inOrder(holds, func(h *hold) (timed, bool) {
		from, to := h.believed()
		return timed{at: from, slot: slot{hi: to}}, h.Outcome == history.OK && from < to
	}, func(t *timed) {
		h := &s.c.holds[t.hold]
		now, shared := reach{t.hold, h.Process, t.at, t.slot.hi}, h.Permits > 0
		if first, certain := far.collide(now, shared); first >= 0 {
			found(pair{first, t.hold}, certain)
		}
		far.of(shared).add(now)
	})
}

// fronts has the holds of a key that end latest so far: one entry for exclusive holds, and one for shared holds, which
// do not exclude each other.
type fronts [2]frontier

func newFronts(clocks *history.Agreement) fronts { return fronts{{clocks: clocks}, {clocks: clocks}} }

func (f *fronts) of(shared bool) *frontier {
	if shared {
		return &f[1]
	}
	return &f[0]
}

// collide returns a hold that overlaps the new hold and excludes it; -1 if none exists. It is the exclusive hold, or
// the shared one, that reaches furthest. If certain is true, they overlap whatever the clocks show.
func (f *fronts) collide(now reach, shared bool) (first int32, certain bool) {
	first, certain = f[0].collide(now)
	if shared || certain || len(f[1].reach) == 0 {
		return first, certain
	}
	if reader, sure := f[1].collide(now); reader >= 0 && (sure || first < 0) {
		return reader, sure
	}
	return first, certain
}

// frontier has, for each process, the hold that reaches furthest so far.
type frontier struct {
	reach  []reach
	clocks *history.Agreement
}

// add adds a hold, perhaps in place of a hold that has ended, and returns its index; -1 if a hold of the same process
// reaches further.
func (z *frontier) add(now reach) (place int) {
	place = len(z.reach)
	for i := range z.reach {
		switch r := &z.reach[i]; {
		case r.process == now.process && now.to <= r.to:
			return -1
		case r.process == now.process || r.to <= now.from:
			place = i
		}
	}
	if place == len(z.reach) {
		z.reach = append(z.reach, reach{})
	}
	z.reach[place] = now
	return place
}

// collide returns, of the holds that overlap the new hold, the one that reaches furthest; -1 if none exists. Holds
// that overlap for certain, whatever the differences of clocks, come first.
func (z *frontier) collide(now reach) (first int32, certain bool) {
	to := time.Duration(0)
	first = -1
	for i := range z.reach {
		r := &z.reach[i]
		if now.from >= r.to {
			continue
		}
		slack := z.clocks.Between(r.process, now.process)
		sure := slack == 0 || now.from+slack < r.to && r.from+slack < now.to
		if first < 0 || sure && !certain || sure == certain && r.to > to {
			first, certain, to = r.hold, sure, r.to
		}
	}
	return first, certain
}

// losses runs the function found for each hold whose grant contradicts the servers' promises to earlier holds: see
// Promise in METHOD.md. A hold is left out if its lease may have ended before its answer arrived, because its place in
// the order is unknown. If no hold is left out, the result is exact.
func (s *sweeper) losses(holds []int32, coupled bool, found func(p pair)) {
	s.late = map[int32]int32{}
	now, last := -history.Forever, int32(-1)    // end of the last exclusive hold
	read, reader := -history.Forever, int32(-1) // latest end of the shared holds since then
	s.inOrder(holds, func(h *hold) (timed, bool) {
		t := s.slot(h, coupled)
		return timed{at: t.hi, slot: t}, h.Outcome == history.OK && t.end(t.lo) > t.hi
	}, func(o *timed) {
		t := &o.slot
		shared := s.c.holds[o.hold].Permits > 0
		x, by := max(t.lo, now), last
		if !shared && read > x {
			x, by = read, reader
		}
		if x > t.hi {
			found(pair{by, o.hold})
			x = t.lo // continue as if only the newer hold existed, so that a loss counts once
		}
		end := t.end(x)
		if end > t.end(t.lo) {
			s.late[o.hold] = by
		}
		switch {
		case !shared:
			now, last, read = end, o.hold, -history.Forever
		case end > read:
			read, reader = end, o.hold
		}
	})
	s.late = nil
}

// before iterates over pairs that explain a pair which the method losses found. The first hold of that pair had to
// begin late because the hold before it ended late. This hold may have been late because of a third one, and so on.
func (s *sweeper) before(p pair) func(yield func(pair) bool) {
	return func(yield func(pair) bool) {
		for last := p.first; ; {
			by, ok := s.late[last]
			if !ok || !yield(pair{by, last}) {
				return
			}
			last = by
		}
	}
}

// moment is a period that contains an instant at which a hold certainly existed.
type moment struct {
	from, to time.Duration
	hold     int32
}

// moments lists the moments of those holds that the method losses leaves out. If the Acquire has no answer, the
// moment is that of a release that succeeded. If the lease may have ended before the answer, the moment is that of
// the Acquire.
func (s *sweeper) moments(holds []int32, coupled bool) (list []moment) {
	for _, n := range holds {
		h := &s.c.holds[n]
		if h.Outcome != history.OK {
			if op := s.proof(h); op != nil {
				list = history.Append(&s.c.scratch, list, moment{op.Call - s.half(h), plus(op.Return, s.half(h)), n})
			}
		} else if t := s.slot(h, coupled); t.end(t.lo) <= t.hi {
			list = history.Append(&s.c.scratch, list, moment{t.lo, t.hi, n})
		}
	}
	slices.SortFunc(list, func(a, b moment) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.hold, b.hold))
	})
	return list
}

// proof returns the release that proves that an Acquire without an answer was granted; nil if none exists. A release
// proves nothing if its answer does not depend on the owner.
func (s *sweeper) proof(h *hold) *history.Op {
	if s.c.Claims.Owned && h.Release >= 0 && s.c.Ops[h.Release].Outcome == history.OK {
		return &s.c.Ops[h.Release]
	}
	return nil
}

// proven handles the holds that the method losses leaves out. It runs the function found for each of them that
// certainly existed while the servers had promised the lock to another worker. An Acquire without an answer and
// without a proof may have done nothing, so it is ignored.
func (s *sweeper) proven(holds []int32, coupled bool, found func(p pair)) {
	points := s.moments(holds, coupled)
	if len(points) == 0 {
		return
	}
	s.order = s.order[:0]
	for _, n := range holds {
		if h := &s.c.holds[n]; h.Outcome == history.OK {
			t := s.slot(h, coupled)
			s.order = history.Append(&s.c.scratch, s.order, stamp{t.hi, n})
		}
	}
	slices.SortFunc(s.order, stamp.compare)
	// index 0: exclusive holds; index 1: shared holds
	at, best, end := 0, [2]int32{-1, -1}, [2]time.Duration{-history.Forever, -history.Forever}
	for _, p := range points {
		for ; at < len(s.order) && s.order[at].at < p.from; at++ {
			h := &s.c.holds[s.order[at].index]
			t, mode := s.slot(h, coupled), min(h.Permits, 1)
			if e := t.end(t.lo); e > end[mode] {
				best[mode], end[mode] = s.order[at].index, e
			}
		}
		switch {
		case best[0] >= 0 && p.to < end[0]:
			found(pair{best[0], p.hold})
		case best[1] >= 0 && p.to < end[1] && s.c.holds[p.hold].Permits == 0:
			found(pair{best[1], p.hold})
		}
	}
}

// overruns runs the function found for each hold whose holder stored after its deadline. The second hold of the pair
// was granted between deadline and store, and had not ended; -1 if there is no such hold.
func (s *sweeper) overruns(holds []int32, found func(p pair)) {
	if !slices.ContainsFunc(holds, func(n int32) bool { return s.c.holds[n].late() }) {
		return
	}
	s.order = s.order[:0]
	for _, n := range holds {
		h := &s.c.holds[n]
		if from, to := h.believed(); h.Outcome == history.OK && from < to {
			s.order = history.Append(&s.c.scratch, s.order, stamp{from, n})
		}
	}
	slices.SortFunc(s.order, stamp.compare)
	s.until = s.until[:0]
	last := -history.Forever
	for _, o := range s.order {
		_, to := s.c.holds[o.index].believed()
		last = max(last, to)
		s.until = history.Append(&s.c.scratch, s.until, last)
	}
	for _, n := range holds {
		if h := &s.c.holds[n]; h.late() {
			found(pair{n, s.meets(n, h)})
		}
	}
}

// given is the time until which a holder could think that it had the lock. A crash does not end that time, and neither
// does a release that may be an inner one.
func (h *hold) given() time.Duration {
	if h.doubtful {
		return min(h.Until, h.Lost)
	}
	return min(h.Until, h.Lost, h.back())
}

// late reports whether a holder stored although it knew, or could have known, that it no longer held the lock.
func (h *hold) late() bool {
	return h.Outcome == history.OK && h.stored != history.Forever && h.stored > h.given()
}

// read returns the time at which a hold's first load returned; Forever if none exists.
func (c *Case) read(h *hold) time.Duration {
	if h.Uses[0] < 0 || c.Ops[h.Uses[0]].Outcome != history.OK {
		return history.Forever
	}
	return c.Ops[h.Uses[0]].Return
}

// meets returns a hold that was granted after the deadline of hold n and before its store; -1 if none exists. If the
// counter is fenced and accepts the store, a later holder's load came after the store, unless the load had returned
// before the store was called.
func (s *sweeper) meets(n int32, h *hold) int32 {
	end, store := h.given(), h.stored
	begin := end
	if h.Uses[0] >= 0 {
		begin = max(begin, s.c.Ops[h.Uses[0]].Call)
	}
	at, _ := slices.BinarySearchFunc(s.order, end, func(o stamp, t time.Duration) int { return cmp.Compare(o.at, t) })
	reach, _ := slices.BinarySearch(s.until, begin) // all holds before this index had ended
	for at = max(at, reach); at < len(s.order) && s.order[at].at < store; at++ {
		o := &s.c.holds[s.order[at].index]
		from, to := o.believed()
		slack := s.c.slack(h.Process, o.Process)
		if s.order[at].index != n && s.c.clash(h.Permits, o.Permits) && from+slack < store && begin+slack < to &&
			(!s.c.Fenced || plus(s.c.read(o), slack) < store) && !s.ordered(o, h) {
			return s.order[at].index
		}
	}
	return -1
}

// ordered reports whether fencing keeps all uses by hold o before those by hold h. Three things are needed. The
// counter rejects the token of o from the load of h on, tokens grow from grant to grant, and no server has lost the
// counter of tokens.
func (s *sweeper) ordered(o, h *hold) bool {
	fence, later := s.c.acquire(o).Fence, s.c.acquire(h).Fence
	return s.c.Fenced && fence > 0 && later > fence && h.Uses[0] >= 0 && !s.regressed(h, o) && s.c.unfenced(h, o) == nil
}

// regressed reports whether hold h has a greater token than hold o, although o must have been granted later.
func (s *sweeper) regressed(h, o *hold) bool {
	held := min(s.assured(o), o.releaseCall)
	fence := s.c.acquire(o).Fence
	return fence > 0 && s.c.acquire(h).Fence > fence && h.Call < o.Return &&
		held > plus(h.Return, s.c.slack(h.Process, o.Process)) && s.c.forgot(o, h.Return) == nil
}
