package checker

import (
	"cmp"
	"slices"
	"time"

	"hammerlock/history"
)

// broken names the cause of a broken guarantee, and keeps it for those that follow from it. The earliest is the
// incident. Of the pairs that come to the same, the first of which there is evidence is the one.
func (x *examiner) broken(p pair, same ...pair) finding {
	f := x.reason(p)
	for k := 0; f.cause == "double-grant" && k < len(same); k++ {
		if other := x.reason(same[k]); other.cause != f.cause {
			f, p = other, same[k]
		}
	}
	for _, n := range [2]int32{p.first, p.second} {
		if _, known := x.broke[n]; !known {
			x.broke[n] = f
		}
	}
	return f
}

// reason is a foreign release, the service, or, if there is no evidence of either, that the cause is not shown.
func (x *examiner) reason(p pair) finding {
	i, j := &x.c.holds[p.first], &x.c.holds[p.second]
	if op := x.sweeper.foreign(i, j.Return); op >= 0 {
		return x.follows(finding{"foreign-release", p, op, nil, false})
	}
	if j.Call < i.Return { // it may have been granted first
		if op := x.sweeper.foreign(j, i.Return); op >= 0 {
			return x.follows(finding{"foreign-release", pair{p.second, p.first}, op, nil, false})
		}
	}
	over := x.sweeper.assured(i)
	if x.c.forgot(i, j.Return) != nil {
		over = x.sweeper.latest(i)
	}
	if i.Release >= 0 && i.ending == returned && i.releaseCall > j.Return && j.Return > over {
		return finding{"foreign-release", p, i.Release, nil, false} // it can only have released the other's
	}
	by := j.Return
	if j.Outcome != history.OK && j.Release >= 0 {
		by = max(by, x.c.Ops[j.Release].Return) // until then it may have been granted
	}
	w := x.c.forgot(i, by)
	if first := plus(i.Return, x.c.slack(i.Process, j.Process)); w == nil && j.Call < first {
		w = x.c.forgot(j, first) // whose answer came later, but which may have been granted before
	}
	if w != nil {
		return finding{"service-loss", p, w.op, w, false}
	}
	if op := x.succeeded(i, j, by); op >= 0 {
		return x.follows(finding{"foreign-release", p, op, nil, false})
	}
	if j.Outcome != history.OK && x.c.Sites < 2 {
		return finding{"foreign-release", p, j.Release, nil, false} // all that is known of it is a release that succeeded
	}
	if f, ok := x.broke[p.first]; ok && x.c.Sites < 2 {
		n := f.pair.first + f.pair.second - p.first
		if other := &x.c.holds[n]; x.freed(other, i, j) {
			return f.again(p, other.Release)
		}
	}
	return finding{"double-grant", p, -1, nil, false}
}

// follows says that a finding follows from an earlier one: the hold whose release was foreign had lost the lock to it
// before, or had got in by it.
func (x *examiner) follows(f finding) finding {
	if before, ok := x.broke[x.c.index.hold(x.c.Ops[f.op].Hold)]; ok && before.cause == f.cause {
		f.follows = true
	}
	return f
}

// freed tells whether a hold was released, with success, after i had asked for the lock and before j had it.
func (x *examiner) freed(k, i, j *hold) bool {
	if k.Release < 0 || x.c.slack(k.Process, i.Process) > 0 {
		return false
	}
	op := &x.c.Ops[k.Release]
	return op.Outcome == history.OK && op.Return > i.Call && op.Call < j.Return
}

// again is the finding of a guarantee that broke because an earlier one had: a hold had got in, and its own release freed
// the lock under the first.
func (f finding) again(p pair, release int32) finding {
	if f.pair, f.follows = p, true; f.cause == "foreign-release" {
		f.op = release
	}
	return f
}

// freeing are the releases of a key, repeated ones too, by call. Up to each, until is when the last of them was answered.
type freeing struct {
	ops   []int32
	calls []time.Duration
	until []time.Duration
}

// freeings lists the releases of a key, but those that certainly had no effect.
func (c *Case) freeings(key int32) *freeing {
	if c.freed == nil {
		c.freed = map[int32]*freeing{}
		for n := range c.holds {
			c.frees(c.holds[n].Release)
		}
		for _, n := range c.repeats {
			c.frees(n)
		}
		for _, f := range c.freed {
			slices.SortStableFunc(f.ops, func(a, b int32) int { return cmp.Compare(c.Ops[a].Call, c.Ops[b].Call) })
			last := time.Duration(0)
			for _, n := range f.ops {
				last = max(last, c.Ops[n].Return)
				f.calls, f.until = append(f.calls, c.Ops[n].Call), append(f.until, last)
			}
		}
	}
	return cmp.Or(c.freed[key], &freeing{})
}

// frees takes in a release.
func (c *Case) frees(n int32) {
	if n < 0 || c.Ops[n].Outcome == history.Failed {
		return
	}
	f := c.freed[c.Ops[n].Key]
	if f == nil {
		f = &freeing{}
		c.freed[c.Ops[n].Key] = f
	}
	f.ops = append(f.ops, n)
}

// between shows, the last first, the releases that were under way between two moments, with their holds, until one fits;
// -1 if none does.
func (c *Case) between(key int32, from, to time.Duration, fits func(k *hold, op *history.Op) bool) int32 {
	f := c.freeings(key)
	at, _ := slices.BinarySearch(f.calls, to)
	for at--; at >= 0 && f.until[at] > from; at-- {
		op := &c.Ops[f.ops[at]]
		if op.Return > from && fits(c.hold(op.Hold), op) {
			return f.ops[at]
		}
	}
	return -1
}

// returnedBefore tells whether a hold had been given back, with success, before one of its releases was called.
func (c *Case) returnedBefore(k *hold, op *history.Op) bool {
	first := &c.Ops[k.Release]
	return first != op && first.Outcome == history.OK && first.Return <= op.Call
}

// foreign finds a release, called before the given time, that ended hold i: of a hold that had expired or had been given
// back, or of any if the lock does not check the owner. Where a fault may have ended hold i, only a release counts that
// was called when its own hold was over for certain.
func (r *ruler) foreign(i *hold, by time.Duration) int32 {
	lost := r.c.forgot(i, by) != nil
	return r.c.between(i.Key, i.Call, by, func(k *hold, op *history.Op) bool {
		if k == i {
			return false
		}
		again := r.c.returnedBefore(k, op)
		outlived := op.Outcome == history.OK && (again || r.assured(k) < op.Return)
		if outlived && lost {
			outlived = (again || op.Call > r.latest(k) && r.c.stretched(k.Call, op.Return) == nil) && !r.outlasted(i, k, op.Return)
		}
		return outlived || !r.c.Claims.Owned && k.Call < i.Return
	})
}

// outlasted tells whether an extension of hold i succeeded that was called after a time of hold k.
func (r *ruler) outlasted(i, k *hold, at time.Duration) bool {
	return slices.ContainsFunc(i.Extends, func(n int32) bool {
		op := &r.c.Ops[n]
		return op.Outcome == history.OK && op.Call >= plus(at, r.c.slack(i.Process, k.Process))
	})
}

// latest is when the lease of a hold is over at the latest, as far as is known.
func (r *ruler) latest(h *hold) time.Duration {
	end := history.Forever
	if h.Outcome == history.OK {
		end = plus(h.Return, r.most(h.TTL))
	}
	for _, n := range h.Extends {
		switch op := &r.c.Ops[n]; op.Outcome {
		case history.OK:
			end = max(end, plus(op.Return, r.most(op.TTL)))
		case history.Unknown:
			end = history.Forever
		}
	}
	return end
}

// succeeded finds a release that was under way during i's hold, called before the given time, and succeeded, of a hold
// that was granted before i, or whose acquire had no answer and may never have been granted: it found i's key, or none.
// That proves nothing for a lock on several sites, or after a fault. One that was called while i asked may have freed the
// lock for i. It counts if it found i's key otherwise: j asked when i had been granted the lock, and would have been
// refused, all three are exclusive, and i was not told that its hold was lost, as it would be by a lock that looks.
func (x *examiner) succeeded(i, j *hold, by time.Duration) int32 {
	if x.c.Sites > 1 {
		return -1
	}
	return x.c.between(i.Key, i.Call, by, func(k *hold, op *history.Op) bool {
		slack := x.c.slack(k.Process, i.Process)
		before := k.Outcome != history.OK || plus(k.Return, slack) < i.Call
		unseen := j.Call > i.Return && i.Permits|j.Permits|k.Permits == 0 && i.ending != gone
		return k != i && k != j && before && op.Outcome == history.OK && x.c.clash(k.Permits, i.Permits) &&
			op.Return > plus(i.Call, slack) && (unseen || op.Call > plus(i.Return, slack))
	})
}
