package checker

import (
	"slices"

	"hammerlock/history"
)

// counted finds the outermost release of a hold whose lock reports counts. An answer says whether its release was an
// inner one. A release without an answer was an inner one if, by all answers, no such release can have left the count
// at zero. The list has the releases of the hold after its first one; those that repeat nothing are added to the map.
func (c *Case) counted(h *hold, list []int32, repeatsNothing map[int32]bool) {
	list = append(list, h.Release)
	slices.SortFunc(list, c.byCalls)
	calls := slices.Concat(c.reenters(h), list)
	slices.SortFunc(calls, c.byCalls)
	n, inner := nested{counted: true}, []int32(nil)
	for _, k := range calls {
		op := &c.Ops[k]
		unheard := op.Kind == history.Release && op.Outcome == history.Unknown
		if op.Kind == history.Release && op.Outcome == history.OK && op.Value == 0 {
			break
		}
		if !n.follow(op) || slices.ContainsFunc(n.possible(), func(d depth) bool { return d.holds == 0 }) {
			if !unheard { // the last one may have been the outermost
				inner = inner[:max(len(inner)-1, 0)]
			}
			break
		}
		if unheard {
			inner = append(inner, k)
		}
	}
	if len(inner) == 0 {
		return
	}
	inside := slices.Concat(c.reenters(h), inner)
	slices.SortFunc(inside, c.byCalls)
	h.reenters = c.keep(inside)
	list = slices.DeleteFunc(list, func(k int32) bool { return slices.Contains(inner, k) })
	h.Release, h.releaseCall, h.releaseReturn, h.ending = -1, history.Forever, history.Forever, endless
	if len(list) > 0 {
		h.releases(list[0], &c.Ops[list[0]])
		inner = append(inner, list[0])
	}
	for _, k := range inner {
		repeatsNothing[k] = true
	}
}

// beginAnew finds holds that may have two leases, because a re-entry may have been a new grant: it was answered after
// the lease may have ended, and its answer does not count another entry. The calls from this re-entry on are no longer
// extensions of the first lease.
func (c *Case) beginAnew() {
	if !c.Claims.Reentrant || !c.Claims.Expires {
		return
	}
	r := ruler{c: c}
	for i := range c.holds {
		h := &c.holds[i]
		calls := slices.Concat(c.extends(h), c.reenters(h))
		slices.SortFunc(calls, c.byCalls)
		calls = slices.Compact(calls)
		end := r.granted(h)
		for n, k := range calls {
			op := &c.Ops[k]
			if op.Outcome != history.OK || op.Kind == history.Release {
				continue
			}
			if op.Kind == history.Acquire && op.Value <= 1 && op.Return > end {
				h.anew = true
				extends := slices.DeleteFunc(c.extends(h), func(x int32) bool { return slices.Contains(calls[n:], x) })
				h.extends.to = h.extends.from + int32(len(extends))
				inside := slices.DeleteFunc(calls, func(x int32) bool { return slices.Contains(extends, x) })
				h.reenters = c.keep(inside)
				break
			}
			end = r.promised(op)
		}
	}
}

// entries counts the re-entries of a hold that certainly count, and those that may not: they had no answer, or there
// was a new grant.
func (c *Case) entries(h *hold) (certain, doubtful int) {
	for _, k := range c.reenters(h) {
		switch op := &c.Ops[k]; {
		case op.Kind != history.Acquire || op.Outcome == history.Failed:
		case op.Outcome == history.OK && !h.anew:
			certain++
		default:
			doubtful++
		}
	}
	return certain, doubtful
}
