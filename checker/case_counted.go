package checker

import (
	"cmp"
	"slices"

	"hammerlock/history"
)

// counted finds the outermost release of a hold whose lock reports counts. An answer says whether its release was an
// inner one. A release without an answer was an inner one if, by all answers, no such release can have left the count
// at zero. The list has the releases of the hold after its first one; those that repeat nothing are added to the map.
func (c *Case) counted(h *hold, list []int32, repeatsNothing map[int32]bool) {
	byCall := func(a, b int32) int { return cmp.Or(cmp.Compare(c.Ops[a].Call, c.Ops[b].Call), cmp.Compare(a, b)) }
	list = append(list, h.Release)
	slices.SortFunc(list, byCall)
	calls := slices.Concat(c.reenters(h), list)
	slices.SortFunc(calls, byCall)
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
	slices.SortFunc(inside, byCall)
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
