package checker

import (
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

// reason is what is known of two grants of a page without a story, of readers or of permits: a foreign release, the
// service, an extension. If there is none, the cause is not shown.
func (x *examiner) reason(p pair) finding {
	i, j := &x.c.holds[p.first], &x.c.holds[p.second]
	by := j.Return
	if j.Outcome != history.OK && j.Release >= 0 {
		by = max(by, x.c.Ops[j.Release].Return) // until then it may have been granted
	}
	if op := x.sweeper.foreign(i, j.Return); op >= 0 {
		return x.follows(finding{cause: history.ForeignRelease, pair: p, op: op})
	}
	if w := x.c.forgot(i, by); w != nil {
		return finding{cause: history.ServiceLoss, pair: p, op: w.op, why: w}
	}
	untrue, extension := x.untrue(i, j)
	if extension >= 0 && (untrue != history.FalseExtension || x.c.unheard(i, x.c.Ops[extension].Return, j.Return) < 0) {
		return finding{cause: untrue, pair: p, op: extension}
	}
	return finding{cause: history.DoubleGrant, pair: p, op: -1}
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
