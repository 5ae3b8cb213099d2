package checker

import (
	"slices"
	"time"

	"hammerlock/history"
)

// broken names the cause of a broken guarantee: the slip of the page's story that explains it. A page of readers or of
// permits has none: there it is a foreign release, or an extension that was not what it was answered to be. What else
// remains is that servers forgot the first hold, or that two were granted the lock.
func (x *examiner) broken(p pair) finding {
	i, j := &x.c.holds[p.first], &x.c.holds[p.second]
	if x.told != nil {
		if f, ok := x.c.names(x.told, p); ok {
			return f
		}
	} else if op := x.released(p); op >= 0 {
		return finding{cause: history.ForeignRelease, pair: p, op: op}
	}
	by := j.Return
	if j.Outcome != history.OK && j.Release >= 0 {
		by = max(by, x.c.Ops[j.Release].Return) // until then it may have been granted
	}
	if w := x.c.forgot(i, by); w != nil {
		return finding{cause: history.ServiceLoss, pair: p, op: w.op, why: w}
	}
	if x.told == nil {
		cause, op := x.untrue(i, j)
		if op >= 0 && (cause != history.FalseExtension || x.c.unheard(i, x.c.Ops[op].Return, j.Return) < 0) {
			return finding{cause: cause, pair: p, op: op}
		}
	}
	return finding{cause: history.DoubleGrant, pair: p, op: -1}
}

// released finds a release that explains two grants: one by another hold, which ended the first of them, or one of the
// two, which succeeded after its lease and the grant of the other, and so was of what that had. -1 without one.
func (x *examiner) released(p pair) int32 {
	i, j := &x.c.holds[p.first], &x.c.holds[p.second]
	if op := x.sweeper.foreign(i, j.Return); op >= 0 {
		return op
	}
	lost := x.c.forgot(i, j.Return) != nil || x.c.forgot(j, i.Return) != nil
	for _, h := range [2]*hold{i, j} {
		over := x.sweeper.assured(h)
		if lost { // it has to be over for certain
			if over = x.sweeper.latest(h); x.c.stretched(h.Call, h.releaseReturn) != nil {
				continue
			}
		}
		if h.ending == returned && h.releaseCall > max(over, i.Return, j.Return) {
			return h.Release
		}
	}
	return -1
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
