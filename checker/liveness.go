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
	Name:   history.Liveness,
	Doc:    "the lock is not idle for long while a worker waits, no writer starves if the lock claims it, and no key outlives its holder and its lease",
	Causes: liveCauses,
	Check:  judgeLiveness,
}

// patience is how long the lock may be idle beyond what the run explains, so that a loaded machine is no violation. A
// history can name another time.
const patience = time.Second

// collisions is how often in a row all who try for independent sites may each get some and none a majority.
const collisions = 4

// liveCauses are the causes, the worst first.
var liveCauses = []string{history.Deadlock, history.Stuck, history.LostWakeup, history.Crossing, history.Starved, history.PartKept, history.Phantom, history.Leak, history.Leftover, history.TTLTooLong}

// stretch is a period on one page.
type stretch struct {
	period
	key int32
}

type livenessCheck struct {
	*Case
	blames[testimony]
	waits     int64
	bound     time.Duration // a longer dead time is "stuck"
	judged    time.Duration // in all: what no fault disturbs, in pieces that are longer than the bound
	dead      time.Duration // the longest dead time, by the belief of the holders
	deadAll   time.Duration
	deadFault time.Duration // the longest that a fault explains
	wanted    int           // how many permits of a semaphore must be free for it to be idle
	misses    map[string]int64
}

// judgeLiveness calls a lock stuck only if it was idle after the last moment at which any server may have kept it for a
// holder, so expiries and unknown outcomes need no bound of their own.
func judgeLiveness(c *Case) Verdict {
	v, _ := weighLiveness(c)
	return v
}

// weighLiveness returns, with the verdict, the times behind it.
func weighLiveness(c *Case) (Verdict, *livenessCheck) {
	l := &livenessCheck{Case: c, misses: map[string]int64{}}
	call, try := l.slowest()
	l.bound = c.Retry*3/2 + call + collisions*try + cmp.Or(c.Bounds.Idle, patience)
	for _, p := range l.disturbed.without(period{0, l.end()}) {
		if lasted := l.hitches.length(p); lasted > l.bound {
			l.judged += lasted
		}
	}
	if l.Claims.Permits > 0 {
		l.want()
	}
	waiting := l.waiting()
	intersect(l.idle(l.believed), waiting, func(s stretch) {
		l.dead = max(l.dead, s.to-s.from)
		l.deadAll += s.to - s.from
	})
	held, blamed := l.kept, l.stuck
	if l.Claims.Permits > 0 { // permits change hands so often that what is kept for no worker cannot be told from what is being given back
		held, blamed = l.believed, l.withheld
	}
	var left []stretch
	intersect(l.idle(held), waiting, func(s stretch) {
		if l.dies(s.period) {
			left = append(left, l.cut(s)...)
		}
	})
	blamed(left)
	l.starved()
	scanned := l.leaks()
	return l.verdict(scanned), l
}

// slowest is the longest call outside of faults, of those that do not wait for a lock or made no session, and the longest try
// that found no quorum. A call to a lock that expires counts for a lease at most: a lock that takes longer to try for a lease than that lasts
// can never be granted, and must not explain that alone.
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

// dies tells whether a period is longer than the bound, without the moments in which a process was paused.
func (l *livenessCheck) dies(p period) bool {
	return p.to-p.from > l.bound && l.hitches.length(p) > l.bound
}

func byKeyAndTime(a, b stretch) int {
	if a.key != b.key {
		return int(a.key) - int(b.key)
	}
	return int(a.from - b.from)
}

// waiting lists when a worker waited for a page's lock.
func (l *livenessCheck) waiting() []stretch {
	list := make([]stretch, 0, l.manyWaits())
	l.Case.waits(func(w *wait) {
		if w.key >= 0 && l.served(w.permits) {
			list = append(list, stretch{period{w.start, w.stop}, l.joint(w.key)})
		}
	})
	l.waits = int64(len(list))
	pages := bucket(list, l.keys, func(s stretch) int32 { return s.key })
	list = list[:0]
	byStop := func(a, b stretch) int { return cmp.Compare(a.to, b.to) }
	for _, page := range pages {
		if !slices.IsSortedFunc(page, byStop) {
			slices.SortFunc(page, byStop)
		}
		// Of the waits that stopped before this one, it overlaps the last ones.
		first := len(list)
		for _, s := range page {
			for n := len(list); n > first && list[n-1].to >= s.from; n = len(list) {
				s.from = min(s.from, list[n-1].from)
				s.to = max(s.to, list[n-1].to)
				list = list[:n-1]
			}
			if n := len(list); !l.visits && n > first && s.from-list[n-1].to < l.bound/2 { // no record says which tries are one visit's
				s.from, list = list[n-1].from, list[:n-1]
			}
			list = append(list, s)
		}
	}
	return list
}

// bucket divides a list by numbers below n. The parts lie in one array, and each keeps the order that its elements have.
func bucket[T any](list []T, n int, of func(T) int32) [][]T {
	sizes := make([]int, n)
	for _, x := range list {
		sizes[of(x)]++
	}
	all, parts := make([]T, len(list)), make([][]T, n)
	for k, size := range sizes {
		parts[k], all = all[:0:size], all[size:]
	}
	for _, x := range list {
		k := of(x)
		parts[k] = append(parts[k], x)
	}
	return parts
}

// idle lists when no hold covers a page, or when a semaphore has as many permits left as are wanted. held is the period that a hold covers.
func (l *livenessCheck) idle(held func(*hold) period) []stretch {
	pages := make([][]int32, l.keys)
	for _, holds := range l.byKey {
		if k := l.joint(l.holds[holds[0]].Key); k >= 0 {
			pages[k] = append(pages[k], holds...)
		}
	}
	gaps := make([]stretch, 0, len(l.holds)+l.keys)
	end := l.end()
	var page []stretch
	for k, holds := range pages {
		page = page[:0]
		if l.Claims.Permits > 0 {
			page = l.full(page, int32(k), holds, held)
			holds = nil
		}
		for _, i := range holds {
			if w := held(&l.holds[i]); w.to > w.from {
				page = append(page, stretch{w, int32(k)})
			}
		}
		if !slices.IsSortedFunc(page, byKeyAndTime) {
			slices.SortFunc(page, byKeyAndTime)
		}
		free := time.Duration(0)
		for _, h := range page {
			if h.from > free {
				gaps = append(gaps, stretch{period{free, h.from}, int32(k)})
			}
			free = max(free, h.to)
		}
		if end > free {
			gaps = append(gaps, stretch{period{free, end}, int32(k)})
		}
	}
	return gaps
}

// believed is when a hold's holder believed in it.
func (l *livenessCheck) believed(h *hold) period {
	if h.Outcome != history.OK {
		return period{}
	}
	return period{h.Return, h.trusted()}
}

// kept is when a server may have kept the lock for a hold. What is renewed after its holder has given it back, however that
// was answered, is kept for no worker: the lock is to blame.
func (l *livenessCheck) kept(h *hold) period {
	w := period{h.Call, 0}
	if h.Outcome == history.OK { // it was granted somewhere in the call; but a lock that answers late must not explain itself
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
		w.to = history.Forever // no record says how long the servers keep it
	case ttl == 0 && h.Outcome == history.OK:
		w.to = h.trusted()
	case ttl == 0:
		w.to = proof
	case l.landed(h, proof) == history.Forever:
		w.to = history.Forever
	default:
		w.to = l.landed(h, proof) + l.longest(ttl)
		if h.Until != history.Forever {
			w.to = max(w.to, h.Until) // a lock may have a longer lease of its own
		}
		if op := l.released(h); l.Bounds.Linger > 0 && op != nil && op.Outcome == history.Unknown && op.Return != history.Forever {
			w.to = max(w.to, op.Return+l.longest(ttl)) // whatever is sent keeps a session
		}
	}
	switch op := l.released(h); {
	case op == nil:
	case op.Outcome == history.OK, op.Outcome == history.Failed && op.Reason == history.Lost && h.Outcome == history.OK:
		w.to = min(w.to, op.Return)
		if ttl == 0 {
			w.to = op.Return
		}
	}
	return w
}

// released is the release of a hold, nil if there was none.
func (l *livenessCheck) released(h *hold) *history.Op {
	if h.Release < 0 {
		return nil
	}
	return &l.Ops[h.Release]
}

// vain tells whether a try for several sites took longer than the lease that it asked for, while at most a minority of them was
// broken. No worker can have believed in what it left behind, so that it keeps the lock for no worker: the lock is to blame.
func (l *livenessCheck) vain(op *history.Op) bool {
	return l.Sites > 1 && l.Claims.Expires && op.Kind == history.Acquire && op.Outcome == history.Unknown && op.TTL > 0 && op.Return != history.Forever &&
		op.Latency() > l.longest(op.TTL) && !l.disturbed.meets(op.Call, op.Return)
}

// landed is when the last command that may have granted or prolonged a hold has taken effect: one without an answer that
// was sent to servers that did not answer, or into links that carried nothing, may do so as soon as they do again.
func (l *livenessCheck) landed(h *hold, proof time.Duration) time.Duration {
	sent := func(op *history.Op) {
		by := op.Return
		for i := range l.windows {
			if w := &l.windows[i]; op.Outcome == history.Unknown && (w.effect.Blocks || !w.effect.Known()) && w.meets(op.Call, by) {
				by = max(by, w.to) // another one may begin as this one ends
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

// intersect shows what two sorted lists have in common.
func intersect(a, b []stretch, emit func(stretch)) {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		x, y := &a[i], &b[j]
		if x.key == y.key {
			if from, to := max(x.from, y.from), min(x.to, y.to); from < to {
				emit(stretch{period{from, to}, x.key})
			}
		}
		if x.key < y.key || x.key == y.key && x.to < y.to {
			i++
		} else {
			j++
		}
	}
}

// accuse blames the lock. Nothing unplanned can explain what is left when disturbed times are taken out.
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
		v.Evidence, v.Story = worst.evidence, worst.story
		v.Summary = fmt.Sprintf("%s: %s; %s", v.Cause, v.Story[0], dead)
	case l.waits == 0:
		v.Summary, v.scant = "no worker waited", true
	case l.judged == 0:
		v.scant = true
		v.Summary = fmt.Sprintf("%s no time of more than %s in which a dead lock could be found; %s", l.shortage(), human.Duration(l.bound), dead)
	default:
		v.Status = Pass
		v.Summary = fmt.Sprintf("%s, in %s that were judged", dead, human.Duration(l.judged))
	}
	return v
}
