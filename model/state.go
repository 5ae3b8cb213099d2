package model

import (
	"slices"
	"time"
)

// mostOpen is the largest number of calls that may be in progress at the same time in a part that is searched.
const mostOpen = 256

// set is a set of slots. A slot is the number of a call in progress.
type set [mostOpen / 64]uint64

func (s *set) has(slot int) bool { return s[slot/64]>>(slot%64)&1 != 0 }
func (s *set) add(slot int)      { s[slot/64] |= 1 << (slot % 64) }
func (s *set) remove(slot int)   { s[slot/64] &^= 1 << (slot % 64) }

// state is one possible state of the servers. Several states share the same slices, so no slice is ever changed.
type state struct {
	held []lease // the holders, in the order of their grants; several only by a deviation
	cur  time.Duration
	done set // open calls that have had their effect
	cost Cost
	last *link

	elsewhere []gone // forgotten holds that another server may still have
}

// gone is a hold that a server forgot.
type gone struct {
	hold   int32
	server int           // -1 = any
	over   time.Duration // the latest end of its lease
}

// has returns the index in elsewhere of a call's hold; -1 if no server can still have the hold. A sighting must come
// from another server than the one that forgot the hold.
func (c *state) has(o *Call) int {
	return slices.IndexFunc(c.elsewhere, func(g gone) bool {
		return g.hold == o.Hold && c.cur <= g.over && (o.Kind != Seen || g.server != o.Server)
	})
}

// forgets returns the state after a server has forgotten a hold. If there are other servers, one of them may still
// have the hold. The state remembers this only if coming answers need it.
func (c state) forgets(i int, w *Window, by time.Duration, expected bool, r *Rules) state {
	l := c.held[i]
	if c = c.without(i); r.Single || !expected {
		return c
	}
	l.hi = min(l.hi, by, w.To)
	g := gone{l.hold, w.Server, r.over(&l)}
	c.elsewhere = slices.Clone(c.elsewhere)
	if k := slices.IndexFunc(c.elsewhere, func(x gone) bool {
		return x.hold == g.hold && x.server == g.server
	}); k >= 0 {
		c.elsewhere[k].over = max(c.elsewhere[k].over, g.over)
	} else {
		c.elsewhere = append(c.elsewhere, g)
	}
	return c
}

// answers returns the state after another server answered a call of a hold that was forgotten.
func (c state) answers(o *Call, i int, by time.Duration, r *Rules) state {
	c.elsewhere = slices.Clone(c.elsewhere)
	switch o.Kind {
	case Release:
		c.elsewhere = slices.Delete(c.elsewhere, i, i+1)
	case Extend:
		if o.Unanswered {
			by = min(by, c.elsewhere[i].over)
		}
		c.elsewhere[i].over = plus(by, r.Most(o.TTL))
	}
	return c
}

// link is a step of a story, and the link before it.
type link struct {
	before *link
	step   Step
	call   int32 // index in Page.Calls; -1 = none
}

// find returns the position of a hold in held, or -1.
func (c *state) find(hold int32) int {
	return slices.IndexFunc(c.held, func(l lease) bool { return l.hold == hold })
}

// without returns the state after a hold has ended.
func (c state) without(i int) state {
	c.held = slices.Delete(slices.Clone(c.held), i, i+1)
	return c
}

// with returns a state that also has the given lease. It replaces the lease of the same hold.
func (c state) with(l lease) state {
	c.held = slices.Clone(c.held)
	if i := c.find(l.hold); i >= 0 {
		c.held[i] = l
	} else {
		c.held = append(c.held, l)
	}
	return c
}

// late returns the state in which a lease that began before the time `by` lasts too long.
func (c state) late(i int, by time.Duration) state {
	l := c.held[i]
	l.late, l.hi = true, min(l.hi, by)
	return c.with(l)
}

func (c state) alone(l lease) state {
	c.held = []lease{l}
	return c
}

// until returns the state at a later time.
func (c state) until(t time.Duration) state {
	c.cur = max(c.cur, t)
	return c
}

func (c state) tell(s Step, call int32, cost Cost) state {
	c.last, c.cost = &link{c.last, s, call}, c.cost+cost
	return c
}

// covers reports whether state c is at least as good as state d in every respect; both have the same holds. Calls that
// need an effect have had it in both. If c has the effect of an unanswered call, d has it, too. If d already satisfies
// a call that changes nothing, so does c.
func (f *front) covers(c, d *state) bool {
	if c.cost > d.cost || c.cur > d.cur {
		return false
	}
	for _, g := range d.elsewhere {
		if !slices.ContainsFunc(c.elsewhere, func(x gone) bool {
			return x.hold == g.hold && x.server == g.server && x.over >= g.over
		}) {
			return false
		}
	}
	for i := range c.done {
		if c.done[i]&f.free.may[i]&^d.done[i] != 0 || d.done[i]&f.free.shows[i]&^c.done[i] != 0 {
			return false
		}
	}
	for i, l := range c.held {
		if m := d.held[i]; l.lo > m.lo || l.hi < m.hi || l.ttl != m.ttl || m.late && !l.late {
			return false
		}
	}
	return true
}

// mostHeld is the largest number of simultaneous holders in a story.
const mostHeld = 3

type key struct {
	done set
	held [mostHeld]int32
}

// free has the slots in which two states may differ and can still be compared.
type free struct {
	may   set // unanswered calls: they need no effect
	shows set // calls that change nothing
}

func (f *free) key(c *state) key {
	k := key{done: c.done}
	for i := range k.done {
		k.done[i] &^= f.may[i] | f.shows[i]
	}
	for i := range k.held {
		if k.held[i] = -1; i < len(c.held) {
			k.held[i] = c.held[i].hold
		}
	}
	return k
}

// front is the set of possible states. It leaves out each state that another one covers.
type front struct {
	free     *free
	places   map[key][]int32
	states   []state
	compared int // number of comparisons
}

func newFront(f *free) *front { return &front{free: f, places: map[key][]int32{}} }

// add keeps a state unless a kept one covers it. It reports whether the state was kept.
func (f *front) add(c state) bool {
	k := f.free.key(&c)
	for _, n := range f.places[k] {
		if f.compared++; f.covers(&f.states[n], &c) {
			return false
		}
	}
	f.places[k] = append(f.places[k], int32(len(f.states)))
	f.states = append(f.states, c)
	return true
}
