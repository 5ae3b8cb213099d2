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
	if k := x.sweeper.foreign(i, j.Return); k >= 0 {
		return x.follows(finding{"foreign-release", p, x.c.holds[k].Release, nil, false}, k)
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
	if k := x.succeeded(i, j, by); k >= 0 {
		return x.follows(finding{"foreign-release", p, x.c.holds[k].Release, nil, false}, k)
	}
	if j.Outcome != history.OK && i.ending != returned && x.c.Sites < 2 {
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
func (x *examiner) follows(f finding, culprit int32) finding {
	if before, ok := x.broke[culprit]; ok && before.cause == f.cause {
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

// freeing are the holds of a key that were given back, by the call of their release. Up to each, until is when the last
// of those releases was answered.
type freeing struct {
	holds []int32
	calls []time.Duration
	until []time.Duration
}

// freeings lists the holds of a key that were given back, but where that certainly had no effect.
func (c *Case) freeings(key int32) *freeing {
	if c.freed == nil {
		c.freed = map[int32]*freeing{}
	}
	if f := c.freed[key]; f != nil {
		return f
	}
	f := &freeing{}
	for _, n := range c.byKey[c.place[key]] {
		if h := &c.holds[n]; h.Release >= 0 && c.Ops[h.Release].Outcome != history.Failed {
			f.holds = append(f.holds, n)
		}
	}
	call := func(n int32) time.Duration { return c.Ops[c.holds[n].Release].Call }
	slices.SortStableFunc(f.holds, func(a, b int32) int { return cmp.Compare(call(a), call(b)) })
	last := time.Duration(0)
	for _, n := range f.holds {
		last = max(last, c.Ops[c.holds[n].Release].Return)
		f.calls, f.until = append(f.calls, call(n)), append(f.until, last)
	}
	c.freed[key] = f
	return f
}

// between shows, the last first, the holds whose release was under way between two moments, until one fits; -1 if none
// does.
func (f *freeing) between(from, to time.Duration, fits func(n int32) bool) int32 {
	at, _ := slices.BinarySearch(f.calls, to)
	for at--; at >= 0 && f.until[at] > from; at-- {
		if fits(f.holds[at]) {
			return f.holds[at]
		}
	}
	return -1
}

// foreign finds a hold whose release, called before the given time, ended hold i: one that had expired, or any if the
// lock does not check the owner. Where a fault may have ended hold i, only a release counts that was called when its
// own lease was over for certain.
func (r *ruler) foreign(i *hold, by time.Duration) int32 {
	lost := r.c.forgot(i, by) != nil
	return r.c.freeings(i.Key).between(i.Call, by, func(n int32) bool {
		k := &r.c.holds[n]
		op := &r.c.Ops[k.Release]
		if k == i || op.Return <= i.Call {
			return false
		}
		outlived := op.Outcome == history.OK && r.assured(k) < op.Return
		if outlived && lost {
			outlived = op.Call > r.latest(k) && r.c.stretched(k.Call, op.Return) == nil && !r.outlasted(i, k, op.Return)
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

// succeeded finds a hold that was granted before i, whose release was called after i's grant and before the given time
// and succeeded: it found i's key, or none. That proves nothing for a lock on several sites, or after a fault. One that
// was called while i asked counts too if its hold had been another's by then, or had had the lock together with
// another. Of an acquire without an answer it counts as well: it may never have been granted.
func (x *examiner) succeeded(i, j *hold, by time.Duration) int32 {
	if x.c.Sites > 1 {
		return -1
	}
	holds := x.c.byKey[x.c.place[i.Key]]
	return x.c.freeings(i.Key).between(i.Call, by, func(n int32) bool {
		k := &x.c.holds[n]
		op := &x.c.Ops[k.Release]
		before := k.Return < i.Call || k.Outcome != history.OK && k.Call < i.Return && op.Call > i.Return
		if k == i || k == j || x.c.slack(k.Process, i.Process) > 0 || !before || !x.c.clash(k.Permits, i.Permits) || op.Outcome != history.OK || op.Return <= i.Call {
			return false
		}
		if _, broke := x.broke[n]; broke || op.Call > i.Return {
			return true
		}
		at, _ := slices.BinarySearch(holds, n)
		for _, m := range holds[at+1:] {
			switch h := &x.c.holds[m]; {
			case h.Call >= op.Call:
				return false
			case h != i && x.c.slack(h.Process, k.Process) == 0 && h.Call > k.Return && h.Return < op.Call:
				return true
			}
		}
		return false
	})
}
