package checker

import (
	"cmp"
	"slices"
	"time"

	"hammerlock/history"
)

// stretch is a period on one page.
type stretch struct {
	period
	key int32
}

type livenessCheck struct {
	*Case
	blames[testimony]
	waits     int64
	end       time.Duration // last time in the workers' records
	bound     time.Duration // a longer dead time counts as stuck
	judged    time.Duration // total time that is judged: without faults, in pieces longer than the bound
	dead      time.Duration // longest dead time: no worker held the lock while one waited
	deadAll   time.Duration
	deadFault time.Duration // longest dead time that a fault explains
	alone     [][]period    // by page: waits of visits, joined where they overlap
	wanted    int           // number of permits that must be free for a semaphore to count as idle: see wants
	every     bool          // requests for any number of permits are looked at: see everFree
	misses    map[string]int64

	refusedFree []barred // see bars; nil = not computed yet
}

// patience is the time for which anything may be late without an explanation.
func (l *livenessCheck) patience() time.Duration { return cmp.Or(l.Bounds.Idle, patience) }

// dies tells whether a period is longer than the bound, without short pauses of processes.
func (l *livenessCheck) dies(p period) bool {
	return p.to-p.from > l.bound && l.calm(p) > l.bound
}

// calm is the length of a period without the short pauses of processes that may lie in it.
func (l *livenessCheck) calm(p period) time.Duration {
	slack := l.anySlack()
	around := period{p.from - slack, plus(p.to, slack)}
	return l.hitches.length(around) - (around.to - p.to) - slack
}

// ran is how long a process certainly ran in a period.
func (l *livenessCheck) ran(process int16, p period) time.Duration {
	w := l.wide(process, p)
	return p.to - p.from - l.stood(process, w.from, w.to)
}

func byKeyAndTime(a, b stretch) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.from, b.from))
}

// waiting lists, for each page, the times in which a worker certainly waited for its lock.
func (l *livenessCheck) waiting() [][]period {
	sizes := make([]int32, l.keys)
	for key, n := range l.manyWaits() {
		sizes[l.joint(int32(key))] += n
	}
	pages := room[period](&l.scratch, sizes)
	l.Case.waits(func(w *wait) {
		if w.key >= 0 && l.served(w.permits) {
			k, p := l.joint(w.key), l.narrow(w.process, period{w.start, w.stop})
			if l.waits++; p.from <= p.to {
				pages[k] = append(pages[k], p)
			}
		}
	})
	apart := time.Duration(0)
	if !l.visits { // it is not recorded which tries belong to one visit
		apart = l.bound / 2
	}
	for k, page := range pages {
		pages[k] = joined(page, apart)
	}
	return pages
}

// comeAgain joins waits for a page if the next one begins within half of the bound. So a worker that comes again and
// again counts as waiting, however short each visit is. It returns nil for permits, and for a lock with a queue, which
// may still have the place of an earlier visit.
func (l *livenessCheck) comeAgain(waiting [][]period) [][]period {
	if l.Claims.Ordered || l.Claims.Writers || l.Claims.Wakes || l.Claims.Permits > 0 {
		return nil
	}
	pages := make([][]period, len(waiting))
	for k, page := range waiting {
		pages[k] = joined(clone(&l.scratch, page), l.bound/2)
	}
	return pages
}

// waited tells whether workers waited for a page without interruption, in one visit or in overlapping ones.
func (l *livenessCheck) waited(s stretch) bool {
	return len(spans(l.alone[s.key]).without(s.period)) == 0
}

// joined joins, in place, waits for a page that overlap, or whose gap is shorter than the time `apart`.
func joined(page []period, apart time.Duration) []period {
	byStop := func(a, b period) int { return cmp.Compare(a.to, b.to) }
	if !slices.IsSortedFunc(page, byStop) {
		slices.SortFunc(page, byStop)
	}
	// the waits come in the order of their ends, so each wait can overlap only the last entries of the list
	list := page[:0]
	for _, s := range page {
		for n := len(list); n > 0 && list[n-1].to >= s.from; n = len(list) {
			s.from = min(s.from, list[n-1].from)
			s.to = max(s.to, list[n-1].to)
			list = list[:n-1]
		}
		if n := len(list); n > 0 && s.from-list[n-1].to < apart {
			s.from, list = list[n-1].from, list[:n-1]
		}
		list = append(list, s)
	}
	return list
}

// idle runs the function emit for each period in which a worker waits for a page and no hold covers the page. For a
// semaphore, these are the periods in which enough permits are free. The function has returns a hold's period, on the
// clock of its process.
func (l *livenessCheck) idle(waiting [][]period, has func(*hold) period, emit func(stretch)) {
	s := newSweeper(l.Case)
	held := func(h *hold) period {
		p := has(h)
		if p.from >= p.to {
			return p
		}
		return l.wide(h.Process, p)
	}
	for page, waits := range waiting {
		free := time.Duration(0)
		covered := func(p period) {
			for ; len(waits) > 0 && waits[0].from < p.from; waits = waits[1:] {
				if from, to := max(free, waits[0].from), min(p.from, waits[0].to, l.end); from < to {
					emit(stretch{period{from, to}, int32(page)})
				}
				if waits[0].to > p.from {
					break
				}
			}
			free = max(free, p.to)
		}
		switch {
		case len(waits) == 0:
			continue
		case l.Claims.Permits > 0:
			s.full(l.onPage(int32(page)), l.Claims.Permits-l.wanted, held, covered)
		default:
			s.covers(l.onPage(int32(page)), held, func(n int32, p period) { covered(p) })
		}
		covered(period{l.end, l.end})
	}
}

// onPage lists the holds of a page, sorted by call. For the joint page, which stands for all pages, it lists
// all holds.
func (l *livenessCheck) onPage(page int32) (list []int32) {
	if !l.Claims.Sets || page != l.joint(page) {
		return l.holdsOf(page)
	}
	for _, n := range l.byCall {
		if l.holds[n].Key >= 0 {
			list = history.Append(&l.scratch, list, n)
		}
	}
	return list
}

// covers runs the function visit for each period that a hold covers, sorted by beginning. No period begins before the
// call of its hold by more than the slack.
func (s *sweeper) covers(holds []int32, held func(*hold) period, visit func(n int32, p period)) {
	s.inOrder(holds, func(h *hold) (timed, bool) {
		p := held(h)
		return timed{at: p.from, slot: slot{hi: p.to}}, p.from < p.to
	}, func(t *timed) { visit(t.hold, period{t.at, t.slot.hi}) })
}

// believed is the period in which a holder relied on its hold.
func (l *livenessCheck) believed(h *hold) period {
	if h.Outcome != history.OK {
		return period{}
	}
	return period{h.Return, h.trusted()}
}

// kept is the period in which a server may have kept the lock for a hold. An extension that was called after the
// release had returned does not make it longer: if such an extension renews the hold, the lock is to blame.
func (l *livenessCheck) kept(h *hold) period {
	w := period{h.Call, 0}
	// the grant took effect somewhere in the call, but a late answer excuses no more than the patience
	if h.Outcome == history.OK {
		w.from = max(h.Call, h.Return-l.patience())
	}
	if h.cut {
		return period{w.from, l.cutShort(h)}
	}
	if l.vain(l.acquire(h)) {
		return period{}
	}
	proof, ttl := min(h.Return, h.Crashed), h.TTL
	for _, i := range l.extends(h) {
		if op := &l.Ops[i]; op.Outcome != history.Failed && op.Call <= h.releaseReturn {
			proof, ttl = max(proof, min(op.Return, max(h.Crashed, op.Call))), max(ttl, op.TTL)
		}
	}
	if !l.Claims.Expires {
		ttl = 0
	}
	switch {
	case ttl == 0 && l.Claims.Expires && h.Until != history.Forever:
		w.to = history.Forever // it is not recorded for how long servers keep the hold
	case ttl == 0 && h.Outcome == history.OK:
		w.to = h.trusted()
	case ttl == 0:
		w.to = proof
	case l.landed(h, proof) == history.Forever:
		w.to = history.Forever
	default:
		w.to = l.landed(h, proof) + l.longest(ttl)
		if h.Until != history.Forever {
			w.to = max(w.to, h.Until) // the lock may have a longer lease of its own
		}
		if l.Bounds.Linger > 0 && h.Release >= 0 && h.answer == history.Unknown && h.releaseReturn != history.Forever {
			w.to = max(w.to, h.releaseReturn+l.longest(ttl)) // every request keeps a session alive
		}
	}
	if h.Release >= 0 && (h.answer == history.OK || h.ending == gone && h.Outcome == history.OK) {
		if w.to = min(w.to, h.releaseReturn); ttl == 0 {
			w.to = h.releaseReturn
		}
	}
	return w
}

// vain reports whether a try on several sites took longer than the lease that it requested, while at most a minority of
// the sites was broken. No worker can rely on the result, so the lock is to blame if the try keeps others out.
func (l *livenessCheck) vain(op *history.Op) bool {
	return l.Sites > 1 && l.Claims.Expires && op.Kind == history.Acquire && op.Outcome == history.Unknown &&
		op.TTL > 0 && op.Return != history.Forever &&
		op.Latency() > l.longest(op.TTL) && !l.disturbed.meets(op.Call, op.Return)
}

// landed is the time by which the last command that may have granted or extended a hold took effect. A command without
// an answer may take effect late, within the patience after it was given up. If its server did not answer, or its link
// was cut, it waits until both work again.
func (l *livenessCheck) landed(h *hold, proof time.Duration) time.Duration {
	sent := func(op *history.Op) {
		by := op.Return
		if op.Outcome == history.Unknown {
			proof = max(proof, plus(min(by, max(h.Crashed, op.Call)), l.patience()))
		}
		for i := range l.windows {
			if w := &l.windows[i]; op.Outcome == history.Unknown && (w.effect.Blocks || !w.effect.Known()) &&
				w.meets(op.Call, by) {
				by = max(by, w.to) // another fault may begin as this one ends
				proof = max(proof, w.to)
			}
		}
	}
	if h.Outcome != history.OK {
		sent(l.acquire(h))
	}
	for _, i := range l.extends(h) {
		if op := &l.Ops[i]; op.Call <= h.releaseReturn {
			sent(op)
		}
	}
	return proof
}

// accuse blames the lock. Disturbed times were removed before, so no unplanned event can explain the violation.
func (l *livenessCheck) accuse(cause string, evidence []history.Op, story ...string) {
	l.blame(cause, testimony{evidence, story}, nil)
}

// tangled examines a period in which no worker can have held any page. It returns, for each caller, an Acquire of
// several pages that waited for at least half of the bound.
func (l *livenessCheck) tangled(p period) (list []history.Op) {
	if !l.Claims.Sets {
		return nil
	}
	found := map[int32]bool{}
	for i := range l.Ops {
		op := &l.Ops[i]
		if op.Kind != history.Acquire || op.Worker < 0 || found[l.Caller(op.Worker)] {
			continue
		}
		w := l.narrow(op.Process, period{op.Call, op.Return})
		if min(w.to, p.to)-max(w.from, p.from) >= l.bound/2 && l.partial(op) {
			found[l.Caller(op.Worker)] = true
			list = append(list, *op)
		}
	}
	return list
}

// served reports whether a request for some permits must be granted if the wanted number is free.
func (l *livenessCheck) served(permits uint16) bool {
	n := cmp.Or(int(permits), l.Claims.Permits)
	return l.Claims.Permits == 0 || l.every || n == l.wanted || l.inLine() && n <= l.wanted
}

// everFree reports whether the wanted number of permits was ever free for longer than the bound, while a worker waited
// for any number.
func (l *livenessCheck) everFree() (free bool) {
	l.every = true
	l.idle(l.waiting(), l.believed, func(s stretch) { free = free || l.dies(s.period) })
	l.every = false
	return free
}

// inLine reports whether a request for few permits may have to wait for one that needs more: the lock serves in order,
// or its message may go to the other one.
func (l *livenessCheck) inLine() bool { return l.Claims.Ordered || l.Claims.Wakes }

// wants lists the numbers of permits that workers request, sorted. Each of them is judged alone. If workers wait in
// line, only the largest number is: if so many are free, the first in line must be served, whatever it requests.
func (l *livenessCheck) wants() []int {
	if l.Claims.Permits == 0 {
		return []int{0}
	}
	var list []int
	for i := range l.Ops {
		if op := &l.Ops[i]; op.Kind == history.Acquire {
			if n := cmp.Or(int(op.Permits), l.Claims.Permits); !slices.Contains(list, n) {
				list = append(list, n)
			}
		}
	}
	if slices.Sort(list); l.inLine() && len(list) > 0 {
		list = list[len(list)-1:]
	}
	return list
}

// barred is a try that was refused although no worker can have held the lock. Several other tries had been refused
// before it, more than collisions between tries explain.
type barred struct {
	stretch
	try  *history.Op
	last *hold // last hold before the try; nil = none
}

// full runs the function visit for each period in which more than `most` permits are taken.
func (s *sweeper) full(holds []int32, most int, held func(*hold) period, visit func(period)) {
	var out heap // holds, the one that ends first is first
	sum, since := 0, time.Duration(-1)
	change := func(at time.Duration, by int) {
		switch sum += by; {
		case sum > most && since < 0:
			since = at
		case sum <= most && since >= 0:
			visit(period{since, at})
			since = -1
		}
	}
	back := func(by time.Duration) {
		for ; len(out) > 0 && out[0].at <= by; out.pop() {
			change(out[0].at, -s.c.weight(&s.c.holds[out[0].hold]))
		}
	}
	s.covers(holds, held, func(n int32, p period) {
		back(p.from)
		change(p.from, s.c.weight(&s.c.holds[n]))
		out.push(timed{at: p.to, hold: n})
	})
	back(history.Forever)
}
