package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

var liveness = Checker{
	Name: history.Liveness,
	Doc: "the lock is not idle for long while a worker waits, no writer starves if the lock claims it, " +
		"and no key outlives its holder and its lease",
	Causes: liveCauses,
	// a lock for scheduled jobs never grants a tick that is over
	Applies: func(h *history.Header) bool { return !h.Claims.Once },
	Check:   judgeLiveness,
}

// patience is the time for which the lock may be idle without any explanation, because machines may be busy. A history
// can set another time.
const patience = time.Second

// collisions is the largest number of times in a row that workers may fail because they try at the same time. Then
// each gets some of several sites, and none gets a majority.
const collisions = 4

// liveCauses lists the causes of failed verdicts of this checker, the worst first.
var liveCauses = append(slices.Clip(waits), history.PartKept, history.Phantom, history.Leak, history.Leftover,
	history.TTLTooLong)

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
	wanted    int           // number of permits that must be free for a semaphore to count as idle
	misses    map[string]int64

	refusedFree []barred // see bars; nil = not computed yet
}

// judgeLiveness calls a lock stuck only if it was idle after the last moment at which any server can have kept it for a
// holder. So expiries and unknown outcomes need no tolerance of their own.
func judgeLiveness(c *Case) Verdict {
	v, _ := weighLiveness(c)
	return v
}

// weighLiveness returns the verdict, and also the check itself, which has the times behind the verdict.
func weighLiveness(c *Case) (Verdict, *livenessCheck) {
	l := &livenessCheck{Case: c, misses: map[string]int64{}, end: c.recorded()}
	call, try := l.slowest()
	l.bound = c.Retry*3/2 + call + collisions*try + cmp.Or(c.Bounds.Idle, patience)
	for _, p := range l.disturbed.without(period{0, l.end}) {
		if lasted := l.hitches.length(p); lasted > l.bound {
			l.judged += lasted
		}
	}
	if l.Claims.Permits > 0 {
		l.want()
	}
	waiting := l.waiting()
	l.alone = waiting
	l.idle(waiting, l.believed, func(s stretch) {
		l.dead = max(l.dead, s.to-s.from)
		l.deadAll += s.to - s.from
	})
	held, blamed := l.kept, l.stuck
	// a permit that is kept for no worker looks like one that is being released
	if l.Claims.Permits > 0 {
		held, blamed = l.believed, l.withheld
	}
	var left []stretch
	dead := func(s stretch) {
		if l.dies(s.period) {
			left = append(left, l.cut(s)...)
		}
	}
	l.idle(waiting, held, dead)
	long := slices.Clone(left)
	l.idle(l.comeAgain(waiting), held, func(s stretch) {
		if !slices.ContainsFunc(long, func(o stretch) bool { return o.key == s.key && o.meets(s.from, s.to) }) {
			dead(s)
		}
	})
	blamed(left)
	l.unheardReleases()
	l.starved()
	l.writersBarred()
	scanned := l.leaks()
	return l.verdict(scanned), l
}

// slowest returns two latencies: of the longest undisturbed call that had a connection and did not wait for a lock,
// and of the longest try that found no quorum. If leases expire, a lock call counts as one lease at most. A lock whose
// tries take longer than a lease can never be granted, and that is no excuse.
func (l *livenessCheck) slowest() (call, try time.Duration) {
	lease := history.Forever
	if l.lease > 0 && l.Claims.Expires {
		lease = l.lease
	}
	for i := range l.Ops {
		op, most, bound := &l.Ops[i], &call, lease
		switch op.Kind {
		case history.Load, history.Store:
			bound = history.Forever
		case history.Release, history.Extend:
		case history.Acquire:
			switch {
			case op.Outcome == history.Failed && op.Reason == history.Quorum:
				most = &try
			case !l.unheard(op):
				continue
			}
		default:
			continue
		}
		if t := op.Latency(); t != history.Forever && min(t, bound) > *most && !l.disturbed.meets(op.Call, op.Return) {
			*most = min(t, bound)
		}
	}
	return call, try
}

// dies tells whether a period is longer than the bound, without short pauses of processes.
func (l *livenessCheck) dies(p period) bool {
	return p.to-p.from > l.bound && l.hitches.length(p) > l.bound
}

func byKeyAndTime(a, b stretch) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.from, b.from))
}

// waiting lists, for each page, the times in which a worker waited for its lock.
func (l *livenessCheck) waiting() [][]period {
	sizes := make([]int32, l.keys)
	for key, n := range l.manyWaits() {
		sizes[l.joint(int32(key))] += n
	}
	pages := room[period](&l.scratch, sizes)
	l.Case.waits(func(w *wait) {
		if w.key >= 0 && l.served(w.permits) {
			k := l.joint(w.key)
			l.waits, pages[k] = l.waits+1, append(pages[k], period{w.start, w.stop})
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
// semaphore, these are the periods in which enough permits are free. The function held returns a hold's period.
func (l *livenessCheck) idle(waiting [][]period, held func(*hold) period, emit func(stretch)) {
	s := newSweeper(l.Case)
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
// call of its hold.
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
		w.from = max(h.Call, h.Return-cmp.Or(l.Bounds.Idle, patience))
	}
	if h.cut {
		return period{w.from, history.Forever}
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
// an answer may take effect late. If its server did not answer, or its link was cut, it waits until both work again.
func (l *livenessCheck) landed(h *hold, proof time.Duration) time.Duration {
	sent := func(op *history.Op) {
		by := op.Return
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

// shortage says why there was no time to judge.
func (l *livenessCheck) shortage() string {
	unplanned := slices.ContainsFunc(l.windows, func(w window) bool { return !w.fault })
	switch {
	case unplanned:
		return "unplanned events, such as paused processes, left"
	case len(l.disturbed) > 0:
		return "faults left"
	}
	return "the run was too short: there was"
}

func (l *livenessCheck) verdict(scanned bool) Verdict {
	v := Verdict{Exposed: l.waits, Misses: l.misses}
	worst := l.into(&v, liveCauses)
	dead := fmt.Sprintf("longest dead time %s, %s in all", human.Duration(l.dead), human.Duration(l.deadAll))
	if l.deadFault > 0 {
		dead += fmt.Sprintf(", of which a fault explains up to %s at a time", human.Duration(l.deadFault))
		l.misses["dead around a fault"]++
	}
	if !scanned {
		dead += "; no key was found left behind"
	}
	switch {
	case v.Status == Fail:
		l.adviseWaiter(&v, worst.evidence)
		v.Evidence, v.Story = worst.evidence, worst.story
		v.Summary = fmt.Sprintf("%s: %s; %s", v.Cause, v.Story[0], dead)
	case l.waits == 0:
		v.Summary, v.scant = "no worker waited", true
	case l.judged == 0:
		v.scant = true
		v.Summary = fmt.Sprintf("%s no time of more than %s in which a dead lock could be found; %s", l.shortage(),
			human.Duration(l.bound), dead)
	default:
		v.Status = Pass
		v.Summary = fmt.Sprintf("%s, in %s that were judged", dead, human.Duration(l.judged))
	}
	return v
}
