package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

var fairness = Checker{
	Name:   history.Fairness,
	Doc:    "who waits is served; a lock that claims an order is held to it, for others only the numbers are given",
	Causes: []string{history.OutOfOrder},
	Check:  judgeFairness,
}

type bypasses struct {
	*Case
	pages   [][]period // for each key, start and stop of its waits
	granted [][]bool   // for each key, whether these waits ended in a grant
	waits   []wait     // waits for a lock that claims an order, in the order of their stops
	overs   []int64    // overs[n] is the number of grants that bypassed n earlier waiters
	grants  []int64    // number of grants to each worker
	longest *wait

	compared       int64 // grants to waits that certainly began after another wait was queued
	wrong, excused int64
	evidence       [2]*wait      // the wait that was bypassed, and the later one
	since          time.Duration // return of the refusal that put the bypassed waiter into the queue
}

func judgeFairness(c *Case) Verdict {
	v, _ := weighFairness(c)
	return v
}

// weighFairness returns the verdict. The list has, at index n, the number of grants that bypassed n earlier waiters.
func weighFairness(c *Case) (Verdict, []int64) {
	b := c.bypasses()
	if b.longest == nil {
		return Verdict{Summary: "no worker waited"}, nil
	}
	b.bypassed()
	if c.Claims.Ordered {
		b.order()
	}
	return b.verdict(), b.overs
}

// bypasses collects the waits of all pages.
func (c *Case) bypasses() *bypasses {
	sizes := c.manyWaits()
	b := &bypasses{Case: c, grants: make([]int64, c.workers), pages: room[period](&c.scratch, sizes),
		granted: room[bool](&c.scratch, sizes)}
	inLine := func(w *wait) {
		if c.Claims.Ordered && w.key >= 0 {
			b.waits = history.Append(&c.scratch, b.waits, *w)
		}
	}
	c.places(func(w *wait) {
		if w.key < 0 {
			return
		}
		b.pages[w.key], b.granted[w.key] = append(b.pages[w.key], period{w.start, w.stop}),
			append(b.granted[w.key], w.hold >= 0)
		if w.hold >= 0 {
			b.grants[w.worker]++
		}
		if l := b.longest; l == nil || cmp.Or(cmp.Compare(w.stop-w.start, l.stop-l.start),
			cmp.Compare(l.stop, w.stop)) > 0 {
			b.longest = new(*w)
		}
		inLine(w)
	}, inLine)
	slices.SortStableFunc(b.waits, func(x, y wait) int { return cmp.Compare(x.stop, y.stop) })
	return b
}

// bypassed counts, for each grant, the waits for its page that began earlier and were still going on. It keeps the
// waits in a Fenwick tree, sorted by start (Fenwick, A New Data Structure for Cumulative Frequency Tables, 1994).
func (b *bypasses) bypassed() {
	most := 0
	for _, page := range b.pages {
		most = max(most, len(page))
	}
	list := func(n int) []int32 { return history.Make[int32](&b.scratch, n) }
	byStop, byStart, rank, tree := list(most), list(most), list(most), list(most+1)
	below := func(r int32) (n int) {
		for ; r > 0; r &= r - 1 {
			n += int(tree[r])
		}
		return n
	}
	for key, page := range b.pages {
		byStop, byStart, tree = byStop[:len(page)], byStart[:len(page)], tree[:len(page)+1]
		for i := range page {
			byStop[i], byStart[i] = int32(i), int32(i)
			tree[i+1] = int32((i + 1) & -(i + 1)) // at first, all waits are open
		}
		slices.SortFunc(byStop, func(i, j int32) int {
			return cmp.Or(cmp.Compare(page[i].to, page[j].to), cmp.Compare(i, j))
		})
		slices.SortFunc(byStart, func(i, j int32) int {
			return cmp.Or(cmp.Compare(page[byStop[i]].from, page[byStop[j]].from), cmp.Compare(i, j))
		})
		for r, i := range byStart {
			rank[i] = int32(r)
		}
		for i, n := range byStop {
			for r := rank[i] + 1; int(r) < len(tree); r += r & -r {
				tree[r]--
			}
			if b.granted[key][n] {
				n := below(rank[i])
				b.overs = append(b.overs, make([]int64, max(n+1-len(b.overs), 0))...)
				b.overs[n]++
			}
		}
	}
}

// order finds inversions: a waiter got the lock before another one that was in the queue first. Inversions since the
// last disturbance have no excuse, so it finds these first, and then all others.
func (b *bypasses) order() {
	found, seen := history.Make[bool](&b.scratch, len(b.waits)), history.Make[bool](&b.scratch, len(b.waits))
	b.inverted(func(w *wait) time.Duration { return w.again }, found, seen)
	if len(b.displaced) > 0 {
		b.inverted(func(w *wait) time.Duration { return w.queued }, found, seen)
	}
}

// inverted finds inversions among all waits. If there are several processes, their clocks differ. So it then looks at
// the waits of each machine, whose clocks agree better, and at those of each process.
func (b *bypasses) inverted(since func(*wait) time.Duration, found, seen []bool) {
	all := history.Make[int32](&b.scratch, len(b.waits))
	machines, of := map[int][]int32{}, make([][]int32, b.processes)
	own := map[int]time.Duration{} // by machine: the largest error of a process's clock
	for i := range b.waits {
		all[i] = int32(i)
		p := b.waits[i].process
		of[p] = history.Append(&b.scratch, of[p], int32(i))
		if int(p) < len(b.Bounds.Doubts) {
			d := &b.Bounds.Doubts[p]
			machines[d.Machine], own[d.Machine] = append(machines[d.Machine], int32(i)), max(own[d.Machine], d.Own)
		}
	}
	slack := b.anySlack()
	b.inversions(all, slack, since, found, seen)
	if slack > 0 {
		for _, m := range slices.Sorted(maps.Keys(machines)) {
			b.inversions(machines[m], 2*own[m], since, found, seen)
		}
		for _, waits := range of {
			b.inversions(waits, 0, since, found, seen)
		}
	}
}

// inversions finds grants to waits that began after another wait was queued, if the queued waiter tried again after
// the grant. A server may admit two readers together, so a reader bypasses another one only if the other was refused
// again. Waits are visited in the order of their first calls. Only one of the waits that were queued before matters:
// the one with the latest last try.
func (b *bypasses) inversions(waits []int32, slack time.Duration, since func(*wait) time.Duration, found, seen []bool) {
	byCall, byQueue := clone(&b.scratch, waits), clone(&b.scratch, waits)
	before := func(a, b time.Duration) bool { return a != history.Forever && a < b-slack }
	slices.SortFunc(byCall, func(i, j int32) int { return cmp.Compare(b.waits[i].stood, b.waits[j].stood) })
	slices.SortFunc(byQueue, func(i, j int32) int { return cmp.Compare(since(&b.waits[i]), since(&b.waits[j])) })
	last := [2][]latest{make([]latest, b.keys), make([]latest, b.keys)} // exclusive waits, shared ones
	next := 0
	for _, j := range byCall {
		w := &b.waits[j]
		for ; next < len(byQueue) && before(since(&b.waits[byQueue[next]]), w.stood); next++ {
			i := byQueue[next]
			e := &b.waits[i]
			last[0][e.key].take(i, e.asked)
			asked := e.denied
			if e.permits == 0 || b.Claims.Permits > 0 {
				asked = e.asked
			}
			last[1][e.key].take(i, asked)
		}
		l := last[min(w.permits, 1)][w.key]
		if w.hold < 0 || l.wait == 0 {
			continue
		}
		earlier := &b.waits[l.wait-1]
		passed := before(w.stop, l.asked)
		if !seen[j] && (passed || !earlier.lapsed) {
			seen[j] = true
			b.compared++
		}
		if !found[j] && passed {
			found[j] = true
			b.invert(earlier, w, since(earlier))
		}
	}
}

// latest is the wait whose last try came latest: the index of the wait plus one (0 = none), and the call of that try.
type latest struct {
	wait  int32
	asked time.Duration
}

func (l *latest) take(wait int32, asked time.Duration) {
	if l.wait == 0 || asked > l.asked {
		*l = latest{wait + 1, asked}
	}
}

func (b *bypasses) invert(earlier, later *wait, since time.Duration) {
	if b.displaced.meets(since, later.stop) {
		b.excused++
		return
	}
	if b.wrong++; b.wrong == 1 {
		b.evidence, b.since = [2]*wait{earlier, later}, since
	}
}

func (b *bypasses) verdict() Verdict {
	// worst is the largest number of waiters that a grant bypassed, and usual is the 99th percentile
	granted, worst, usual := int64(0), len(b.overs)-1, 0
	for _, times := range b.overs {
		granted += times
	}
	for rest := (granted - 1) * 99 / 100; usual < worst && rest >= b.overs[usual]; usual++ {
		rest -= b.overs[usual]
	}
	v := Verdict{Exposed: granted, Violations: b.wrong, Misses: map[string]int64{}}
	if b.excused > 0 {
		v.Misses["order inverted around a fault"] = b.excused
	}
	numbers := "no grant"
	if granted > 0 {
		numbers = fmt.Sprintf("%s grants passed over at most %s earlier waiters, p99 %s; Jain index %.3f; "+
			"longest wait %s of %s",
			human.Count(granted), human.Count(int64(worst)), human.Count(int64(usual)), b.jain(),
			human.Duration(b.longest.stop-b.longest.start), who(b.longest.worker))
	}
	v.Summary = numbers
	switch {
	case b.wrong > 0:
		v.Status, v.Cause, v.Causes = Fail, history.OutOfOrder, map[string]int64{history.OutOfOrder: b.wrong}
		v.Summary = fmt.Sprintf("%s grants out of order; %s", human.Count(b.wrong), numbers)
		b.tell(&v)
	case granted == 0:
	case b.Claims.Ordered && !b.visits:
		v.Summary = "the history has no ends of visits, so each try is a wait alone, and shows no order; " + numbers
	case b.Claims.Ordered && b.compared == 0:
		v.scant = true
		v.Summary = "no grant went to a waiter that certainly queued after another one, so nothing shows an order; " +
			numbers
	default:
		v.Status = Pass
	}
	return v
}

// passed lists the tries that show that a later wait ended before an earlier one. These are the refusal that put the
// earlier waiter into the queue, its last try, and the grant to the later waiter.
func (c *Case) passed(refused time.Duration, earlier, later *wait) (list []history.Op) {
	for i := range c.Ops {
		op := &c.Ops[i]
		mine := op.Worker == earlier.worker && (op.Return == refused || op.Call == earlier.asked)
		theirs := op.Worker == later.worker && op.Return == later.stop
		if op.Kind == history.Acquire && (mine || theirs) {
			list = append(list, *op)
		}
	}
	return list
}

// jain is Jain's index of the workers' grants (Jain, Chiu, Hawe 1984): 1 if all workers have the same number, 1/n if
// one worker has all grants.
func (b *bypasses) jain() float64 {
	var sum, squares float64
	for _, n := range b.grants {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(max(b.workers, b.Workers)) * squares)
}

// tell adds the first inversion to the verdict.
func (b *bypasses) tell(v *Verdict) {
	earlier, later := b.evidence[0], b.evidence[1]
	v.Evidence = b.passed(b.since, earlier, later)
	v.Story = []string{
		fmt.Sprintf("%s was refused, and so in the queue, at %s", who(earlier.worker), clock(b.since)),
		fmt.Sprintf("%s asked for the first time at %s and was granted the lock at %s", who(later.worker),
			clock(later.start), clock(later.stop)),
		fmt.Sprintf("%s still waited then: it asked again at %s", who(earlier.worker), clock(earlier.asked)),
	}
}
