package model

import (
	"slices"
	"time"
)

// mostOpen is how many calls may be under way at a time in a part that is searched.
const mostOpen = 256

// set is a set of slots of open calls.
type set [mostOpen / 64]uint64

func (s *set) has(slot int) bool { return s[slot/64]>>(slot%64)&1 != 0 }
func (s *set) add(slot int)      { s[slot/64] |= 1 << (slot % 64) }
func (s *set) remove(slot int)   { s[slot/64] &^= 1 << (slot % 64) }

// state is one that the servers may be in. States share what they hold: it is never changed.
type state struct {
	held []lease // who has the lock, in the order of their grants; more than one only by a deviation
	cur  time.Duration
	done set // open calls that have had their effect
	cost Cost
	last *link

	elsewhere []gone // holds that were forgotten, and that another server may still have
}

// gone is a hold that a server forgot.
type gone struct {
	hold   int32
	server int           // -1 = any
	over   time.Duration // its lease is over then at the latest
}

// has is the place of the hold of a call that another server may have, not the one that forgot it; -1 without it.
func (c *state) has(o *Call) int {
	return slices.IndexFunc(c.elsewhere, func(g gone) bool {
		return g.hold == o.Hold && c.cur <= g.over && (o.Kind != Seen || g.server != o.Server)
	})
}

// forgets is a state in which a server has forgotten a hold. Where it is not the only one, another may have it still:
// that counts if answers are expected that only it can give.
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

// answers is a state after another server has answered a call of a hold that was forgotten.
func (c state) answers(o *Call, i int, by time.Duration, r *Rules) state {
	c.elsewhere = slices.Clone(c.elsewhere)
	switch o.Kind {
	case Release:
		c.elsewhere = slices.Delete(c.elsewhere, i, i+1)
	case Extend:
		c.elsewhere[i].over = plus(min(by, c.elsewhere[i].over), r.Most(o.TTL))
	}
	return c
}

// link is a step of a story, and the one before.
type link struct {
	before *link
	step   Step
	call   int32 // in Page.Calls; -1 = none
}

// find is the place of a hold among those that have the lock; -1 without it.
func (c *state) find(hold int32) int {
	return slices.IndexFunc(c.held, func(l lease) bool { return l.hold == hold })
}

// without is a state in which a hold has ended.
func (c state) without(i int) state {
	c.held = slices.Delete(slices.Clone(c.held), i, i+1)
	return c
}

// with is a state in which a lease is added, or takes the place of the one of its hold.
func (c state) with(l lease) state {
	c.held = slices.Clone(c.held)
	if i := c.find(l.hold); i >= 0 {
		c.held[i] = l
	} else {
		c.held = append(c.held, l)
	}
	return c
}

// late is a state in which a lease that began by a moment lasts too long.
func (c state) late(i int, by time.Duration) state {
	l := c.held[i]
	l.late, l.hi = true, min(l.hi, by)
	return c.with(l)
}

// alone is a state in which a lease is the only one.
func (c state) alone(l lease) state {
	c.held = []lease{l}
	return c
}

// until moves a state on to a moment at the earliest.
func (c state) until(t time.Duration) state {
	c.cur = max(c.cur, t)
	return c
}

// tell adds a step and its cost.
func (c state) tell(s Step, call int32, cost Cost) state {
	c.last, c.cost = &link{c.last, s, call}, c.cost+cost
	return c
}

// covers tells whether another state of the same holds is no better in anything: calls that need an effect are done in
// both, calls that may have one are left, and what was to be shown is shown.
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

// mostHeld is how many may have the lock at a time in a story.
const mostHeld = 3

type key struct {
	done set
	held [mostHeld]int32
}

// free are the slots of calls which need not be alike in states that are compared.
type free struct {
	may   set // without an answer: they need no effect
	shows set // they change nothing
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

// front is the states that are possible, without those that others cover.
type front struct {
	free     *free
	places   map[key][]int32
	states   []state
	compared int // how often two of them were compared
}

func newFront(f *free) *front { return &front{free: f, places: map[key][]int32{}} }

// add keeps a state unless one that is kept covers it.
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
