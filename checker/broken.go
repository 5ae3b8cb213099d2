package checker

import (
	"slices"
	"time"

	"hammerlock/history"
)

// broken names the cause of a broken guarantee, and keeps it for those that follow from it.
func (x *examiner) broken(p pair) finding {
	f := x.reason(p)
	x.broke[p.first], x.broke[p.second] = f, f
	return f
}

// reason is a foreign release, the service, or, if there is no evidence of either, an acquire that is not atomic.
func (x *examiner) reason(p pair) finding {
	i, j := &x.c.holds[p.first], &x.c.holds[p.second]
	if op := x.sweeper.foreign(i, p.second-1, j.Return); op >= 0 {
		return finding{"foreign-release", p, op, nil}
	}
	over := x.sweeper.assured(i)
	if x.c.forgot(i, j.Return) != nil {
		over = x.sweeper.latest(i)
	}
	if i.ending == returned && i.releaseCall > j.Return && j.Return > over {
		return finding{"foreign-release", p, i.Release, nil} // it can only have released the other's
	}
	by := j.Return
	if j.Outcome != history.OK && j.Release >= 0 {
		by = max(by, x.c.Ops[j.Release].Return) // until then it may have been granted
	}
	if w := x.c.forgot(i, by); w != nil {
		return finding{"service-loss", p, w.op, w}
	}
	if op := x.succeeded(i, p.second-1, j.Return); op >= 0 {
		return finding{"foreign-release", p, op, nil}
	}
	if j.Outcome != history.OK && i.ending != returned && x.c.Sites < 2 {
		return finding{"foreign-release", p, j.Release, nil} // all that is known of it is a release that succeeded
	}
	if f, ok := x.broke[p.first]; ok && x.c.Sites < 2 {
		other := &x.c.holds[f.pair.first+f.pair.second-p.first]
		if x.freed(other, i, j) {
			return f.again(p, other.Release)
		}
	}
	return finding{"double-grant", p, -1, nil}
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
	if f.pair = p; f.cause == "foreign-release" {
		f.op = release
	}
	return f
}

const foreignReach = 256 // holds that are searched for a foreign release

// upTo lists holds of a key, up to one of any, as many as are searched.
func (c *Case) upTo(last, key int32) []int32 {
	holds := c.byKey[c.place[key]]
	n, _ := slices.BinarySearch(holds, last+1)
	return holds[max(n-foreignReach, 0):n]
}

// foreign finds a release of another hold, called before the given time, that ended hold i: of a hold that had expired,
// or of any if the lock does not check the owner. It searches the holds from last backwards.
func (r *ruler) foreign(i *hold, last int32, by time.Duration) int32 {
	for _, n := range slices.Backward(r.c.upTo(last, i.Key)) {
		k := &r.c.holds[n]
		if k == i || k.Release < 0 {
			continue
		}
		op := &r.c.Ops[k.Release]
		if op.Outcome == history.Failed || op.Return <= i.Call || op.Call >= by {
			continue
		}
		outlived := op.Outcome == history.OK && r.assured(k) < op.Return
		if outlived && op.Call <= r.latest(k) && r.c.forgot(i, op.Return) != nil {
			outlived = false // it may have been granted late, when a server had forgotten i
		}
		if outlived && r.outlasted(i, k, op.Return) && r.c.forgot(i, by) != nil {
			outlived = false // i was still there after it
		}
		if outlived || !r.c.Claims.Owned && k.Call < i.Return {
			return k.Release
		}
	}
	return -1
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

// succeeded finds the release of a hold that was granted before i, which was called after i's grant and before the given
// time and succeeded: it found i's key, or none. That proves nothing for a lock on several sites, or after a fault. One that
// was called while i asked counts too if its hold had been another's by then, or had had the lock together with another.
func (x *examiner) succeeded(i *hold, last int32, by time.Duration) int32 {
	if x.c.Sites > 1 {
		return -1
	}
	holds := x.c.upTo(last, i.Key)
	for at, n := range slices.Backward(holds) {
		k := &x.c.holds[n]
		if x.c.slack(k.Process, i.Process) > 0 || k.Return >= i.Call || k.Release < 0 || !x.c.clash(k.Permits, i.Permits) {
			continue
		}
		op := &x.c.Ops[k.Release]
		if op.Outcome != history.OK || op.Return <= i.Call || op.Call >= by {
			continue
		}
		replaced := func(n int32) bool {
			m := &x.c.holds[n]
			return m != i && x.c.slack(m.Process, k.Process) == 0 && m.Call > k.Return && m.Return < op.Call
		}
		if _, broke := x.broke[n]; broke || op.Call > i.Return || slices.ContainsFunc(holds[at+1:], replaced) {
			return k.Release
		}
	}
	return -1
}
