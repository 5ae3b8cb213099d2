package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
)

// Holds are exclusive, or have some of the lock's permits. Readers have one each, of as many as there are readers; a
// semaphore has as many as it claims.

// clash tells whether holds of a and b permits exclude each other: one of them is exclusive, or there are not enough
// for both.
func (c *Case) clash(a, b uint16) bool {
	return a == 0 || b == 0 || c.Claims.Permits > 0 && int(a)+int(b) > c.Claims.Permits
}

// weight is how many permits of a semaphore a hold has.
func (c *Case) weight(h *hold) int {
	if h.Permits == 0 {
		return c.Claims.Permits
	}
	return int(h.Permits)
}

// mode says in words how a hold shares the lock; empty for one that does not.
func (c *Case) mode(h *hold) string {
	switch {
	case h.Permits == 0:
		return ""
	case c.Claims.Permits == 0:
		return ", as a reader,"
	}
	return fmt.Sprintf(", %d of %d permits,", h.Permits, c.Claims.Permits)
}

// semaphore finds the violations among the holds of a key of which there are permits. It is what pairs does, with sums
// in place of pairs: first what the servers cannot have granted, so that what is left is a holder that believed for too
// long.
func (x *examiner) semaphore(holds []int32) {
	s, groups := x.sweeper, x.c.groups(holds)
	for _, g := range groups {
		s.scope = g.scope
		s.crowds(g.holds, s.guaranteed, x.overdrawn)
		s.crowds(g.holds, s.believes, x.overbelieved)
	}
	if s.scope = asRead; len(groups) > 1 {
		s.crowds(holds, s.believes, func(n int32, _ []timed) {
			if !x.blamed[n] {
				x.misses["possible"]++
			}
		})
	}
}

// believes is B, shorter at either end by what its clock may be off: of such intervals, any that have a moment in
// common have one whatever the clocks are.
func (s *sweeper) believes(h *hold) (from, to time.Duration) {
	from, to = h.believed()
	return from + s.half(h), minus(to, s.half(h))
}

// guaranteed is when a hold surely existed, whenever it began: from its last possible start to its first possible end.
func (s *sweeper) guaranteed(h *hold) (from, to time.Duration) {
	t := s.slot(h, false)
	return t.hi, t.end(t.lo)
}

// crowds calls found for each hold that begins when, with it, more permits are out than there are, with those that have
// them. The holds that have not ended stand in a heap: O(n log n).
func (s *sweeper) crowds(holds []int32, span func(*hold) (from, to time.Duration),
	found func(n int32, others []timed)) {
	var held heap
	out := 0
	s.inOrder(holds, func(h *hold) (timed, bool) {
		from, to := span(h)
		return timed{at: from, slot: slot{hi: to}}, h.Outcome == history.OK && from < to
	}, func(t *timed) {
		for ; len(held) > 0 && held[0].at <= t.at; held.pop() {
			out -= s.c.weight(&s.c.holds[held[0].hold])
		}
		if out += s.c.weight(&s.c.holds[t.hold]); out > s.c.Claims.Permits {
			found(t.hold, held)
		}
		held.push(timed{at: t.slot.hi, hold: t.hold})
	})
}

// overdrawn blames a hold that the servers granted although too many permits were out.
func (x *examiner) overdrawn(n int32, others []timed) {
	if x.blamed[n] {
		return
	}
	x.blamed[n] = true
	far := slices.MaxFunc(others, func(a, b timed) int { return cmp.Compare(a.at, b.at) })
	forgotten, w := x.forgotten(others, x.c.holds[n].Return)
	f := finding{cause: history.ForeignRelease, pair: pair{far.hold, n}, op: x.givenBack(n, w != nil)}
	if f.op < 0 {
		f = x.broken(f.pair)
	}
	if f.cause == history.DoubleGrant && w != nil {
		f = finding{cause: history.ServiceLoss, pair: pair{forgotten, n}, op: w.op, why: w}
	}
	x.add(f)
}

// others are the holds beside a pair, in the order of their calls, that were believed in when the second hold of the
// pair was granted: with it they have more permits than there are.
func (c *Case) others(p pair) (list []int32) {
	last := &c.holds[p.second]
	out := c.weight(&c.holds[p.first]) + c.weight(last)
	for _, n := range c.byCall {
		h := &c.holds[n]
		if out > c.Claims.Permits {
			break
		}
		if n == p.first || n == p.second || h.Key != last.Key || h.Outcome != history.OK {
			continue
		}
		if from, to := h.believed(); from <= last.Return && last.Return < to {
			list, out = append(list, n), out+c.weight(h)
		}
	}
	return list
}

// forgotten finds a hold that servers may have forgotten by a time, and why.
func (x *examiner) forgotten(list []timed, by time.Duration) (hold int32, w *window) {
	for _, o := range list {
		if w := x.c.forgot(&x.c.holds[o.hold], by); w != nil {
			return o.hold, w
		}
	}
	return -1, nil
}

// givenBack finds a release that succeeded before a hold was granted, of a hold whose lease was over, or that may never
// have been granted: the permit had come back by itself, and there has been one too many since. Where servers may have
// forgotten a hold, the lease has to be over for certain.
func (x *examiner) givenBack(n int32, lost bool) int32 {
	if x.back.rule != lost {
		x.back = search{rule: lost, key: x.back.key, found: -1}
	}
	return x.back.last(x.c, x.c.holds[n].Return, func(h *hold, op *history.Op) bool {
		over := x.sweeper.assured(h) < op.Return || h.Outcome != history.OK
		if lost {
			over = x.sweeper.latest(h) < op.Call && x.c.stretched(h.Call, op.Return) == nil
		}
		return op.Outcome == history.OK && (over || x.c.returnedBefore(h, op))
	})
}

// overbelieved blames, of the holders of too many permits that the servers may have granted, the one whose lease was
// over first.
func (x *examiner) overbelieved(n int32, others []timed) {
	if x.blamed[n] {
		return
	}
	x.blamed[n] = true
	first := slices.MinFunc(others, func(a, b timed) int {
		return cmp.Compare(x.sweeper.assured(&x.c.holds[a.hold]), x.sweeper.assured(&x.c.holds[b.hold]))
	})
	x.collision(pair{first.hold, n})
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

// anew tells whether a re-entry was counted as the first: its lock says that it was granted anew.
func anew(op *history.Op) bool { return op.Kind == history.Acquire && op.Value == 1 }
