package checker

import (
	"cmp"
	"slices"
	"time"

	"hammerlock/history"
)

// freeing are the releases of a key, repeated ones too, by call. Up to each, until is when the last of them was
// answered.
type freeing struct {
	ops   []int32
	until []time.Duration
}

// freeings lists the releases of a key, but those that certainly had no effect.
func (c *Case) freeings(key int32) *freeing {
	if c.freed == nil {
		all, sizes := history.Make[stamp](&c.scratch, len(c.repeats)+len(c.holds))[:0], make([]int32, c.keys+1)
		add := func(n int32) {
			if op := &c.Ops[n]; op.Outcome != history.Failed {
				all, sizes[op.Key+1] = append(all, stamp{op.Call, n}), sizes[op.Key+1]+1
			}
		}
		for _, n := range c.repeats {
			add(n)
		}
		for n := range c.holds {
			if op := c.holds[n].Release; op >= 0 {
				add(op)
			}
		}
		slices.SortStableFunc(all, func(a, b stamp) int { return cmp.Compare(a.at, b.at) })
		c.freed = make([]freeing, len(sizes))
		for k, ops := range room[int32](&c.space, sizes) {
			c.freed[k].ops = ops
		}
		for k, until := range room[time.Duration](&c.space, sizes) {
			c.freed[k].until = until
		}
		for _, s := range all {
			op := &c.Ops[s.index]
			c.freed[op.Key+1].add(s.index, op.Return)
		}
	}
	return &c.freed[key+1]
}

// add puts a release after all others.
func (f *freeing) add(n int32, answered time.Duration) {
	if last := len(f.until); last > 0 {
		answered = max(answered, f.until[last-1])
	}
	f.ops, f.until = append(f.ops, n), append(f.until, answered)
}

// search looks for the last release of a key that fits and was under way since a moment. It remembers how far it has
// looked, so that a hold that lasts for long does not make it look at everything for each of those that came meanwhile.
type search struct {
	hold  *hold // whose end is looked for; nil = any
	rule  bool  // by which of two rules it is
	key   int32
	from  time.Duration
	to    time.Duration // up to there it has looked
	found int32         // into Ops; -1 = none
}

// of is the search for the end of a hold by a rule: the same one, or another.
func (s *search) of(h *hold, rule bool) *search {
	if s.hold != h || s.rule != rule {
		*s = search{h, rule, h.Key, h.Call, 0, -1}
	}
	return s
}

// last is the last release that fits and was called before a moment; -1 without one.
func (s *search) last(c *Case, to time.Duration, fits func(k *hold, op *history.Op) bool) int32 {
	switch {
	case to > s.to:
	case s.found < 0 || c.Ops[s.found].Call < to:
		return s.found
	default:
		s.to, s.found = 0, -1
	}
	f := c.freeings(s.key)
	at, _ := slices.BinarySearchFunc(f.ops, to, func(n int32, t time.Duration) int {
		return cmp.Compare(c.Ops[n].Call, t)
	})
	for at--; at >= 0 && f.until[at] > s.from; at-- {
		op := &c.Ops[f.ops[at]]
		if op.Call < s.to {
			break
		}
		if op.Return > s.from && fits(c.hold(op.Hold), op) {
			s.found = f.ops[at]
			break
		}
	}
	s.to = to
	return s.found
}
