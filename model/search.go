package model

import (
	"cmp"
	"container/heap"
	"slices"
)

// searcher looks for all possible states of a part of a page, event by event. A call has its effect as late as
// possible: when an answer needs the effect. Other open calls may have had theirs before (Lowe, "Testing for
// linearizability", 2016).
type searcher struct {
	*explainer
	open    []int32 // by slot: a call in progress or without an answer; -1 = none
	slots   []int32 // by call: its slot
	wins    []int32 // indices in explainer.wins of the windows that were open during the part
	now     int32   // index of the current event
	bound   Cost    // a story must cost less than this
	slack   Cost    // and less than the cheapest state's cost plus this
	deviate bool    // deviations are allowed
	looked  int     // states looked at in this part
	most    int     // largest number of states to look at
	width   int     // states kept after each answer; 0 = all
	stuck   int32   // the call without a state; -1 = the bound of states was reached
	todo    byCost
	free    free
	active  []int32 // holds of the part with calls before and after now
	tried   *front
}

// A part of a page is searched with these bounds, in this order. The first search allows no deviations. The last two
// have no bound on the total cost: they are for parts with many deviations.
var tries = [...]struct{ bound, slack Cost }{
	{oneDeviation, oneDeviation}, {2 * oneDeviation, 2 * oneDeviation}, {3 * oneDeviation, 3 * oneDeviation},
	{4 * oneDeviation, 4 * oneDeviation}, {1 << 63, 2 * oneDeviation}, {1 << 63, oneDeviation},
}

// seek searches the part from an event to a cut. If the end state is not clear, the part goes on to a later cut. It
// returns the end state and the index of the cut.
func (e *explainer) seek(from int32, n int, start single) (single, int) {
	s := e.search
	if s == nil {
		s = &searcher{explainer: e, slots: make([]int32, len(e.p.Calls))}
		e.search = s
	}
	first := e.cutBefore(n, from)
	for ; ; n++ {
		c := e.cuts[n]
		e.forget(from, c.event+1, first)
		stuck := int32(-1)
		s.looked, s.most = 0, min(s.b.States, s.b.All-e.story.Looked)
		for k, try := range tries {
			s.begin(start, from, c.event+1, first)
			s.bound, s.slack, s.deviate = try.bound, try.slack, k > 0
			list, ok := s.run(start, from, c.event+1)
			if k == 0 {
				if stuck = s.stuck; !ok && stuck < 0 {
					break
				}
			}
			if !ok {
				continue
			}
			if best, ok := s.best(list, c.owner, from, n == len(e.cuts)-1); ok {
				e.story.Looked += s.looked
				return e.found(best, c.owner), n
			}
			stuck = -2
			break
		}
		e.story.Looked += s.looked
		if stuck == -2 {
			continue
		}
		if stuck >= 0 {
			if best, ok := s.narrow(start, from, c.event+1, first); ok {
				return e.found(best, c.owner), n
			}
		}
		return e.notFound(stuck, c), n
	}
}

// A part with deviations and too many states is searched again, by the method narrow. It keeps only the cheapest
// states after each answer: their number is width. For each answer it looks at perAnswer states. The result may not be
// the cheapest story.
const width, perAnswer = 32, 400

// narrow searches a part with these limits. It returns false if it finds no story.
func (s *searcher) narrow(start single, from, to int32, first []int32) (best state, ok bool) {
	s.begin(start, from, to, first)
	s.bound, s.slack, s.deviate, s.width = 1<<63, oneDeviation, true, width
	list, ok := s.run(start, from, to)
	if s.width = 0; !ok {
		return best, false
	}
	return slices.MinFunc(list, func(a, b state) int { return cmp.Compare(a.cost, b.cost) }), true
}

// longest limits the number of events in a part. If two end states of a part cost the same, apart from priors, the
// search extends the part, but not beyond this limit.
const longest = 1000

// best returns the cheapest state at a cut. It returns false if later calls must decide, because another state costs
// the same, apart from priors. In that state the owner has lost the lock, or the bounds of its lease are wider. A
// deviation may have left a second holder. It makes no more calls, so its lease must be able to end.
func (s *searcher) best(list []state, owner int32, from int32, last bool) (best state, ok bool) {
	least := slices.MinFunc(list, func(a, b state) int { return cmp.Compare(a.cost, b.cost) })
	if last {
		return least, true
	}
	by := s.events[s.now].at
	if owner < 0 { // the page is free until the next call
		by = s.events[s.now+1].at
	}
	for _, c := range list {
		if c.cost.counted() > least.cost.counted() {
			continue
		}
		if owner >= 0 && c.find(owner) < 0 {
			if s.now-from < longest {
				return least, false
			}
			continue
		}
		for i := len(c.held) - 1; i >= 0; i-- {
			l := c.held[i]
			if end := max(c.cur, plus(l.lo, s.p.Least(l.ttl))); l.hold != owner && end <= by {
				c = c.without(i).tell(Step{At: end, Event: LeaseEnd, Hold: l.hold, Window: -1, Against: -1}, -1, 0)
			}
		}
		if alone := len(c.held) == 0 || owner >= 0 && len(c.held) == 1; alone && (!ok || c.cost < best.cost) {
			best, ok = c, true
		}
	}
	for _, c := range list {
		if i := c.find(owner); ok && i >= 0 && c.cost.counted() == least.cost.counted() && s.now-from < longest &&
			(c.held[i].lo < best.held[0].lo || c.held[i].hi > best.held[0].hi) {
			return least, false
		}
	}
	return best, ok
}

// cutBefore lists the grants that are in progress where a part begins.
func (e *explainer) cutBefore(n int, from int32) []int32 {
	if n == 0 {
		return nil
	}
	return e.waiting(from, e.cuts[n-1].waiting)
}

// forget undoes the marks that the walk made in done.
func (e *explainer) forget(from, to int32, first []int32) {
	for _, v := range e.events[from:to] {
		if !e.holds[e.p.Calls[v.call].Hold].idle { // the walk leaves those alone
			e.done[v.call] = false
		}
	}
	for _, n := range first {
		e.done[n] = false
	}
}

// found adds the steps of a state to the story.
func (e *explainer) found(c state, owner int32) single {
	list, at := []*link(nil), len(e.steps)
	for l := c.last; l != nil; l = l.before {
		list = append(list, l)
	}
	for _, l := range slices.Backward(list) {
		e.add(l.step, l.call)
	}
	if e.story.Cost = e.story.Cost.and(c.cost); !e.b.Instants {
		e.settle(at)
	}
	for _, l := range e.links[at:] {
		if l >= 0 {
			e.done[l] = true
		}
	}
	if i := c.find(owner); i >= 0 {
		return single{owner, c.held[i], c.cur}
	}
	return unheld
}

// notFound continues after a part without a story. It returns the state that the cut at its end implies.
func (e *explainer) notFound(stuck int32, c cut) single {
	if stuck >= 0 {
		e.story.Status = max(e.story.Status, Unexplained)
		e.story.Unexplained = append(e.story.Unexplained, e.p.Calls[stuck].ID)
	} else {
		e.story.Status = Unknown
	}
	if c.owner < 0 {
		return unheld
	}
	g := &e.p.Calls[e.holds[c.owner].grant]
	e.done[e.holds[c.owner].grant] = true
	return single{c.owner, e.p.begin(g, g.From, g.To), g.From}
}

// begin prepares the search of a part. It opens the calls that are in progress where the part begins.
func (s *searcher) begin(start single, from, to int32, first []int32) {
	s.open, s.stuck = s.open[:0], -1
	for _, n := range first {
		s.opens(n)
	}
	if s.wins = nil; from < to {
		since := s.events[from].at
		if start.owner >= 0 {
			since = start.lease.lo
		}
		s.wins = s.explainer.wins.between(since, s.events[to-1].at)
	}
	slices.SortFunc(s.wins, func(a, b int32) int {
		return cmp.Compare(s.explainer.wins.list[a].To, s.explainer.wins.list[b].To)
	})
}

// opens gives a call the first free slot. It returns false if all slots are taken.
func (s *searcher) opens(n int32) bool {
	slot := slices.Index(s.open, -1)
	if slot < 0 {
		if slot = len(s.open); slot >= mostOpen {
			return false
		}
		s.open = append(s.open, -1)
	}
	s.open[slot], s.slots[n] = n, int32(slot)
	s.free.may.remove(slot)
	s.free.shows.remove(slot)
	switch c := &s.p.Calls[n]; {
	case c.Unanswered:
		s.free.may.add(slot)
	case c.Kind == Lost || c.Kind == Seen:
		s.free.shows.add(slot)
	}
	return true
}

// run goes through the events. It returns false if no state is left, or too many were looked at.
func (s *searcher) run(start single, from, to int32) ([]state, bool) {
	c := state{cur: start.cur}
	if s.active = s.active[:0]; start.owner >= 0 {
		s.active = append(s.active, start.owner)
		c.held = []lease{start.lease}
	}
	list, closed := []state{c}, 0
	for i := from; i < to; i++ {
		v := s.events[i]
		for ; closed < len(s.wins) && s.explainer.wins.list[s.wins[closed]].To < v.at; closed++ {
			s.now = i - 1
			list = s.closes(list, s.wins[closed])
		}
		s.activate(s.p.Calls[v.call].Hold, i)
		if s.holds[s.p.Calls[v.call].Hold].idle && !s.deviate {
			continue
		}
		if s.now = i; !v.end {
			if !s.opens(v.call) {
				return nil, false
			}
			for k := range list {
				list[k] = s.shown(list[k])
			}
			continue
		}
		if slot := int(s.slots[v.call]); slot >= len(s.open) || s.open[slot] != v.call {
			continue // it began before the part, and its hold is idle
		}
		if s.width > 0 {
			s.most = s.looked + perAnswer
		}
		if list = s.answered(list, v.call); s.width > 0 && len(list) > 0 {
			list = list[:min(len(list), s.width)] // the cheapest came first
		} else if s.looked > s.most {
			return nil, false
		}
		if len(list) == 0 {
			s.stuck = v.call
			return nil, false
		}
		s.open[s.slots[v.call]] = -1
	}
	return list, true
}

// activate updates the list of holds that have calls before and after an event.
func (s *searcher) activate(hold, i int32) {
	if i == s.holds[hold].first {
		s.active = append(slices.DeleteFunc(s.active, func(n int32) bool { return s.holds[n].last < i }), hold)
	}
}

// answered finds the states in which a call has had its effect before its answer.
func (s *searcher) answered(list []state, n int32) []state {
	slot, by := int(s.slots[n]), s.p.Calls[n].To
	if len(list) == 1 && list[0].done.has(slot) { // the usual case
		list[0].done.remove(slot)
		return list
	}
	out, kept := newFront(&s.free), s.bound
	s.tried, s.todo = newFront(&s.free), s.todo[:0]
	for _, c := range list {
		heap.Push(&s.todo, c)
	}
	for len(s.todo) > 0 && s.looked <= s.most {
		c := heap.Pop(&s.todo).(state)
		if c.cost >= s.bound {
			break
		}
		if c.done.has(slot) {
			c.done.remove(slot)
			if out.add(c) && len(out.states) == 1 { // the cheapest comes first
				s.bound = min(s.bound, c.cost+s.slack)
			}
			continue
		}
		s.looked++
		s.spontaneous(c, by)
		for _, m := range s.open {
			switch {
			case m < 0:
			case !c.done.has(int(s.slots[m])):
				s.apply(c, m, by)
			case s.deviate:
				s.again(c, m, by)
			}
		}
	}
	s.bound = kept
	return out.states
}

// byCost is a heap of states, the cheapest first.
type byCost []state

func (l byCost) Len() int           { return len(l) }
func (l byCost) Less(i, j int) bool { return l[i].cost < l[j].cost }
func (l byCost) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *byCost) Push(c any)        { *l = append(*l, c.(state)) }
func (l *byCost) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

// yield adds a state to the search, unless it costs too much or another state covers it.
func (s *searcher) yield(c state) {
	if c.cost >= s.bound {
		return
	}
	if c = s.shown(c); s.tried.add(c) {
		heap.Push(&s.todo, c)
	}
	s.looked += s.tried.compared / comparisons
	s.tried.compared %= comparisons
}

// comparisons is the number of comparisons of states that counts as one state looked at. With many unanswered calls, no
// state covers another, and the comparisons take most of the time.
const comparisons = 10_000

// shown returns the state with marks for the open Lost and Seen calls that are true in it.
func (s *searcher) shown(c state) state {
	for slot, n := range s.open {
		if n < 0 || c.done.has(slot) {
			continue
		}
		o := &s.p.Calls[n]
		if o.From > c.cur || o.Kind != Lost && o.Kind != Seen {
			continue
		}
		i := c.find(o.Hold)
		switch {
		case o.Kind == Lost && i < 0 && !s.early(&c, o):
		case o.Kind == Seen && i >= 0 && len(s.wins) == 0 && !o.Endless && c.cur <= s.p.over(&c.held[i]):
			c = c.with(s.p.alive(c.held[i], c.cur, o.To))
		default:
			continue
		}
		c.done.add(slot)
		c = c.tell(s.effect(n, c.cur), n, 0)
	}
	return c
}
