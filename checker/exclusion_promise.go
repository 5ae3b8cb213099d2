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
	if x.told != nil {
		if f, ok := x.c.names(x.told, p); ok {
			return f
		}
	}
	f := x.reason(p)
	for k := 0; f.cause == history.DoubleGrant && k < len(same); k++ {
		if other := x.reason(same[k]); other.cause != f.cause {
			f, p = other, same[k]
		}
	}
	return x.keep(p, f)
}

// keep keeps a finding for those that follow from it.
func (x *examiner) keep(p pair, f finding) finding {
	for _, n := range [2]int32{p.first, p.second} {
		if _, known := x.broke[n]; !known {
			x.broke[n] = f
		}
	}
	return f
}

// reason is the first of the mistakes of which there is evidence: a foreign release, the service, an extension. If
// there is none, the cause is not shown.
func (x *examiner) reason(p pair) finding {
	i, j := &x.c.holds[p.first], &x.c.holds[p.second]
	untrue, extension := x.untrue(i, j)
	extended := finding{cause: untrue, pair: p, op: extension}
	by := j.Return
	if j.Outcome != history.OK && j.Release >= 0 {
		by = max(by, x.c.Ops[j.Release].Return) // until then it may have been granted
	}
	w := x.c.forgot(i, by)
	if first := plus(i.Return, x.c.slack(i.Process, j.Process)); w == nil && j.Call < first {
		w = x.c.forgot(j, first) // whose answer came later, but which may have been granted before
	}
	if w == nil && x.freedNothing(i, j) {
		return finding{cause: history.FalseRelease, pair: p, op: j.Release}
	}
	if x.c.Claims.Owned && x.others(i, j) {
		return x.ended(i, p) // that the lease was over explains the second grant, and no release need have freed the lock
	}
	if op := x.sweeper.foreign(i, j.Return); op >= 0 {
		if k := x.c.hold(x.c.Ops[op].Hold); w == nil && x.c.Claims.Owned && k.Release == op &&
			x.c.Ops[op].Call <= x.sweeper.assured(k) {
			if extension >= 0 {
				return extended // rather than by a release that was called in time
			}
			if n := x.stole(i, j); n >= 0 {
				return finding{cause: history.SilentReacquire, pair: p, op: n}
			}
		}
		return x.follows(finding{cause: history.ForeignRelease, pair: p, op: op})
	}
	if x.others(i, j) {
		return x.ended(i, p)
	}
	if w != nil {
		return finding{cause: history.ServiceLoss, pair: p, op: w.op, why: w}
	}
	if f := x.reversed(p); f.cause != "" {
		return f
	}
	if untrue == history.SilentReacquire {
		return extended
	}
	unseen := j.Call > i.Return && i.Permits|j.Permits == 0 && i.ending != gone
	if op := x.succeeded(i, by, unseen); op >= 0 && x.sweeper.refusedFor(i, x.c.Ops[op].Return, j.Call) < 0 {
		return x.follows(finding{cause: history.ForeignRelease, pair: p, op: op})
	}
	if f := x.inherited(p); f.cause != "" {
		return f
	}
	if extension >= 0 && (untrue != history.FalseExtension || x.c.unheard(i, x.c.Ops[extension].Return, j.Return) < 0) {
		return extended
	}
	return finding{cause: history.DoubleGrant, pair: p, op: -1}
}

// freedNothing tells whether all that is known of j is a release that succeeded during i, though nothing shows that it
// freed the lock: i was not told that it had lost it, and no other was granted it.
func (x *examiner) freedNothing(i, j *hold) bool {
	return j.Outcome != history.OK && j.Release >= 0 && x.c.Claims.Owned &&
		i.Outcome == history.OK && i.ending != gone && i.Lost == history.Forever &&
		(x.sweeper.outlasted(i, j, x.c.Ops[j.Release].Return) || x.granted(i) < j.releaseCall)
}

// granted is when the last was asked for of the grants within the guarantee of a hold.
func (x *examiner) granted(h *hold) (last time.Duration) {
	if x.within.hold == h {
		return x.within.last
	}
	holds, over := x.c.holdsOf(h.Key), min(h.releaseCall, x.sweeper.assured(h))
	at, _ := slices.BinarySearchFunc(holds, h.Return, func(n int32, t time.Duration) int {
		return cmp.Compare(x.c.holds[n].Call, t)
	})
	for ; at < len(holds) && x.c.holds[holds[at]].Call < over; at++ {
		if m := &x.c.holds[holds[at]]; m.Outcome == history.OK && m.Return < over {
			last = m.Call
		}
	}
	x.within.hold, x.within.last = h, last
	return last
}

// ended is a finding about a release after its hold was over: it is foreign if anything shows that it took the lock
// from another. A lock that looks whose it is may have been right to release it if an extension without an answer took
// it.
func (x *examiner) ended(h *hold, p pair) finding {
	op := &x.c.Ops[h.Release]
	holds := x.c.holdsOf(h.Key)
	at, _ := slices.BinarySearchFunc(holds, op.Return, func(n int32, t time.Duration) int {
		return cmp.Compare(x.c.holds[n].Call, t)
	})
	for at--; at >= 0 && plus(x.c.holds[holds[at]].Call, x.c.lease) > h.releaseCall; at-- {
		k := &x.c.holds[holds[at]]
		if k == h || k.Outcome != history.OK || min(k.releaseReturn, x.sweeper.latest(k)) < op.Call {
			continue
		}
		if k.ending == gone || k.Lost != history.Forever || x.granted(k) > op.Call {
			return finding{cause: history.ForeignRelease, pair: p, op: h.Release}
		}
	}
	if !x.c.Claims.Owned {
		return finding{cause: history.ForeignRelease, pair: p, op: h.Release}
	}
	extends := x.c.extends(h)
	for k := len(extends) - 1; k >= 0 && x.c.Ops[extends[k]].Outcome != history.OK; k-- {
		if n := extends[k]; x.c.Ops[n].Outcome == history.Unknown && x.c.Ops[n].Call < op.Call {
			return finding{cause: history.SilentReacquire, pair: p, op: n}
		}
	}
	return finding{cause: history.FalseRelease, pair: p, op: h.Release}
}

// reversed finds a foreign release if the second was granted the lock before the first, or if one of them was granted
// it later than the loss of its lease shows: that counts from when a lease was over, unless a release had ended it.
func (x *examiner) reversed(p pair) finding {
	i, j := &x.c.holds[p.first], &x.c.holds[p.second]
	back := pair{p.second, p.first}
	if j.Call < i.Return {
		if op := x.sweeper.foreign(j, i.Return); op >= 0 {
			return x.follows(finding{cause: history.ForeignRelease, pair: back, op: op})
		}
		if x.others(j, i) {
			return x.ended(j, back)
		}
	}
	for _, q := range [2]pair{back, p} {
		h := &x.c.holds[q.first]
		if h.ending != gone {
			continue
		}
		if op := x.sweeper.foreign(h, h.releaseReturn); op >= 0 {
			return x.follows(finding{cause: history.ForeignRelease, pair: q, op: op})
		}
	}
	return finding{}
}

// inherited is the cause of an earlier finding of the first hold: another had got in, and its own release freed the
// lock.
func (x *examiner) inherited(p pair) finding {
	f, ok := x.broke[p.first]
	if !ok || x.c.Sites > 1 {
		return finding{}
	}
	other := f.pair.first
	switch p.first {
	case f.pair.first:
		other = f.pair.second
	case f.pair.second:
	default:
		return finding{} // that follows from one of other holds
	}
	i, j, k := &x.c.holds[p.first], &x.c.holds[p.second], &x.c.holds[other]
	if k.releaseCall >= j.Return || k.releaseReturn <= i.Call || k.Release < 0 ||
		x.c.Ops[k.Release].Outcome != history.OK || x.c.slack(k.Process, i.Process) != 0 {
		return finding{}
	}
	if f.pair, f.follows = p, true; f.cause == history.ForeignRelease {
		f.op = k.Release
	}
	return f
}

// untrue finds the extension of hold i without which its lease may have been over when j was granted the lock: it
// succeeded although the lock was j's, if i went on having it or j lost it, or did not make the lease longer. -1
// without one.
func (x *examiner) untrue(i, j *hold) (cause string, extension int32) {
	if x.c.share(i, j) {
		return "", -1
	}
	took := i.ending == returned || j.ending == gone && j.releaseReturn < x.sweeper.assured(j)
	before, end, extension := time.Duration(-1), x.sweeper.promised(x.c.acquire(i)), int32(-1)
	for _, n := range x.c.extends(i) {
		op := &x.c.Ops[n]
		switch {
		case op.Outcome != history.OK || anew(op):
		case op.Call <= j.Return:
			before, end, extension = end, max(end, x.sweeper.promised(op)), n
		case end <= j.Return:
			return history.SilentReacquire, n
		default:
			took = true
		}
	}
	switch {
	case extension < 0 || before > j.Return:
		return "", -1
	case took && x.c.Ops[extension].Return > before:
		return history.SilentReacquire, extension
	}
	return history.FalseExtension, extension
}

// stole finds the extension of hold i that succeeded after the lock had been granted to j, who had it, as is shown by
// an extension or a release that succeeded: it did not look whose the lock was. -1 without one.
func (x *examiner) stole(i, j *hold) int32 {
	had := j.ending == returned || lastProof(x.c, j, history.Forever) >= 0
	if !had || x.c.Sites > 1 || i.Permits|j.Permits != 0 || x.c.share(i, j) {
		return -1
	}
	for _, n := range x.c.extends(i) {
		if op := &x.c.Ops[n]; op.Outcome == history.OK && !anew(op) &&
			op.Call > plus(j.Return, x.c.slack(i.Process, j.Process)) {
			return n
		}
	}
	return -1
}

// others tells whether hold i's release can only have released j's: i's lease was over when j was granted, or the
// server had forgotten it, and j had been granted when the release was called.
func (x *examiner) others(i, j *hold) bool {
	over, replaced := x.sweeper.assured(i), false
	if x.c.forgot(i, j.Return) != nil {
		over, replaced = x.sweeper.latest(i), x.replaced(i, j)
	}
	return i.Release >= 0 && i.ending == returned && i.releaseCall > j.Return && (j.Return > over || replaced)
}

// replaced tells whether the only server, which may have forgotten one of two holds, cannot have had both when the
// first release of them was called: what it forgets does not come back. So one of two releases that were answered ok
// was answered wrongly, or that of the hold that was granted first.
func (x *examiner) replaced(i, j *hold) bool {
	slack, both := x.c.slack(i.Process, j.Process), max(i.Return, j.Return)
	released := func(h *hold) bool { return h.ending == returned && h.releaseCall > plus(both, slack) }
	inOrder := j.Call > plus(i.Return, slack)
	return x.c.Nodes == 1 && i.Permits|j.Permits == 0 && !x.c.share(i, j) && i.Outcome == history.OK &&
		j.Outcome == history.OK && released(i) && (inOrder || released(j)) &&
		x.c.forgotten(i.Key, both, max(i.releaseReturn, min(j.releaseReturn, j.releaseCall))) == nil
}

// freeing finds a release of another hold that can have freed the lock between two grants; -1 without one.
func (x *examiner) freeing(p pair) int32 {
	if x.c.Sites > 1 {
		return -1
	}
	i, j := &x.c.holds[p.first], &x.c.holds[p.second]
	op := x.unowned[2].of(i, false).last(x.c, max(i.Return, j.Return), func(k *hold, op *history.Op) bool {
		return k != i && k != j && op.Return > min(i.Call, j.Call) && x.c.clash(k.Permits, i.Permits)
	})
	if op >= 0 && x.sweeper.refusedFor(i, x.c.Ops[op].Return, j.Call) >= 0 {
		return -1
	}
	return op
}

// blameReleases counts double grants as foreign releases where some of these are proven, and each of the others has a
// release that can have been one: then nothing speaks for an acquire that is not atomic.
func (x *examiner) blameReleases() {
	n := x.counts[history.DoubleGrant]
	if x.untold && n > 0 && !x.bare && x.c.Sites < 2 && x.counts[history.ForeignRelease] > 0 {
		x.counts[history.ForeignRelease] += n
		delete(x.counts, history.DoubleGrant)
	}
}

// follows says that a finding follows from an earlier one: the hold whose release was foreign had lost the lock to it
// before, or had got in by it, or had taken the lock by an extension.
func (x *examiner) follows(f finding) finding {
	releaser := x.c.holdAt(x.c.Ops[f.op].Hold)
	before, ok := x.broke[releaser]
	switch {
	case ok && before.cause == f.cause:
		f.follows = true
	case ok && before.cause == history.SilentReacquire && before.pair.first == releaser:
		before.follows = true
		return before
	}
	return f
}

// returnedBefore tells whether a hold had been given back, with success, before one of its releases was called.
func (c *Case) returnedBefore(k *hold, op *history.Op) bool {
	first := &c.Ops[k.Release]
	return first != op && first.Outcome == history.OK && first.Return <= op.Call
}

// foreign finds a release, called before the given time, that ended hold i: of a hold that had expired or had been
// given back, or of any if the lock does not check the owner. Where a fault may have ended hold i, only a release
// counts that was called when its own hold was over for certain.
func (r *ruler) foreign(i *hold, by time.Duration) int32 {
	lost := r.c.forgot(i, by) != nil
	return r.foreigners.of(i, lost).last(r.c, by, func(k *hold, op *history.Op) bool {
		if k == i {
			return false
		}
		again := r.c.returnedBefore(k, op)
		outlived := op.Outcome == history.OK && (again || r.assured(k) < op.Return)
		if outlived && lost {
			outlived = (again || op.Call > r.latest(k) && r.c.stretched(k.Call, op.Return) == nil) &&
				!r.outlasted(i, k, op.Return)
		}
		return outlived || !r.c.Claims.Owned && k.Call < i.Return
	})
}

// outlasted tells whether an extension of hold i succeeded that was called after a time of hold k.
func (r *ruler) outlasted(i, k *hold, at time.Duration) bool {
	return slices.ContainsFunc(r.c.extends(i), func(n int32) bool {
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
	for _, n := range r.c.extends(h) {
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
// That proves nothing for a lock on several sites, or after a fault. One that was called while i asked may have freed
// the lock for i. It counts if it must have found i's key otherwise: the second asked when i had been granted the lock,
// and would have been refused, all three are exclusive, and i was not told that its hold was lost, as it would be by a
// lock that looks.
func (x *examiner) succeeded(i *hold, by time.Duration, unseen bool) int32 {
	if x.c.Sites > 1 {
		return -1
	}
	s := &x.unowned[0]
	if unseen {
		s = &x.unowned[1]
	}
	return s.of(i, unseen).last(x.c, by, func(k *hold, op *history.Op) bool {
		slack := x.c.slack(k.Process, i.Process)
		before := k.Outcome != history.OK || plus(k.Return, slack) < i.Call
		return k != i && before && op.Outcome == history.OK && x.c.clash(k.Permits, i.Permits) &&
			op.Return > plus(i.Call, slack) &&
			(unseen && k.Permits == 0 || op.Call > plus(i.Return, slack))
	})
}
