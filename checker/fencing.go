package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

var fencing = Checker{
	Name:    "fencing",
	Doc:     "every grant has a greater fencing token than any before, and a fenced counter takes no older one",
	Causes:  fenceCauses,
	Applies: func(h *history.Header) bool { return h.Claims.Fences },
	Check:   judgeFencing,
}

// fenceCauses lists the causes of failed verdicts of this checker, the worst first.
var fenceCauses = []string{history.StaleStore, history.Repeated, history.Regressed, history.NoToken}

// fences is the state of the fencing checker.
type fences struct {
	*Case
	grants   int64
	compared int64 // grants that certainly came after another
	refused  int64
	unfenced int64 // stale stores that a counter without fencing accepted
	blames[disordered]
}

// disordered has the operations behind a violation, as indices in Ops; -1 = none. The field back is a release which
// shows that the first grant came before the second.
type disordered struct{ first, back, second int32 }

func judgeFencing(c *Case) Verdict {
	g := &fences{Case: c}
	g.repeats()
	g.order()
	g.afterReleases()
	g.resource()
	return g.verdict()
}

// disorder blames a grant or a store (the argument after), because an earlier one (the argument before) has a token
// that is too large. If both were in progress at the same time, either may be the first, so an excuse may lie anywhere
// in both calls.
func (g *fences) disorder(cause string, before, back, after int32) {
	a, b := &g.Ops[before], &g.Ops[after]
	why := g.accident(a.Key, min(a.Call, b.Call), max(a.Return, b.Return))
	if cause == history.StaleStore {
		why = g.miscounted(a.Key, a.Call, b.Return)
	}
	g.blame(cause, disordered{before, back, after}, why)
}

func isGrant(op *history.Op) bool {
	return op.Kind == history.Acquire && op.Outcome == history.OK && op.Key >= 0 && op.Outermost()
}

// repeats finds tokens that were given twice, and counts rejected loads. It sorts grants only for pages whose tokens
// did not grow in the order of the grants' returns.
func (g *fences) repeats() {
	grown := make([]int64, g.keys)
	suspect := make([]bool, g.keys)
	doubts := false
	for i := range g.Ops {
		op := &g.Ops[i]
		if op.Kind == history.Load && op.Outcome == history.Failed && op.Reason == history.Fenced {
			g.refused++ // some counters check tokens at loads, too
		}
		if !isGrant(op) {
			continue
		}
		if g.grants++; op.Fence == 0 {
			g.blame(history.NoToken, disordered{int32(i), -1, -1}, nil)
		} else if op.Fence > grown[op.Key] {
			grown[op.Key] = op.Fence
		} else {
			suspect[op.Key], doubts = true, true
		}
	}
	if !doubts {
		return
	}
	var grants []int32
	for i := range g.Ops {
		if op := &g.Ops[i]; isGrant(op) && op.Fence != 0 && suspect[op.Key] {
			grants = history.Append(&g.scratch, grants, int32(i))
		}
	}
	slices.SortFunc(grants, func(a, b int32) int {
		x, y := &g.Ops[a], &g.Ops[b]
		return cmp.Or(cmp.Compare(x.Key, y.Key), cmp.Compare(x.Fence, y.Fence), cmp.Compare(a, b))
	})
	for i := 1; i < len(grants); i++ {
		if x, y := &g.Ops[grants[i-1]], &g.Ops[grants[i]]; x.Key == y.Key && x.Fence == y.Fence {
			g.disorder(history.Repeated, grants[i-1], -1, grants[i])
		}
	}
}

func (g *fences) fence(i int32) int64 {
	if op := &g.Ops[i]; op.Outcome == history.OK {
		return op.Fence
	}
	return -1
}

// order finds grants with a smaller token than some grant that had returned before their call.
func (g *fences) order() {
	fencedGrant := func(op *history.Op) bool { return isGrant(op) && op.Fence != 0 }
	g.inRealTime(fencedGrant, g.fence, func(i, best int32) {
		if best < 0 {
			return
		}
		if g.compared++; g.Ops[i].Fence < g.Ops[best].Fence {
			g.disorder(history.Regressed, best, -1, i)
		}
	})
}

// afterReleases finds grants with a smaller token than a hold that had been given back before the grant's answer. Only
// one holder has the lock at a time. So a hold that is alive at its answer came after every hold that had ended by
// then, even if it was requested earlier.
func (g *fences) afterReleases() {
	if !g.Claims.Excludes || !g.Claims.Owned || g.Sites > 1 {
		return
	}
	type back struct{ grant, release int32 }
	best := map[int32]back{} // by key: the greatest token of the holds that were given back
	r := ruler{c: g.Case}
	for i := range g.Ops {
		op := &g.Ops[i]
		if op.Key < 0 || op.Outcome != history.OK || op.Permits > 0 {
			continue
		}
		h := g.hold(op.Hold)
		switch b, known := best[op.Key]; {
		case h == nil || h.Permits > 0:
		case op.Kind == history.Release && g.at(op.ID) == h.Release && h.Outcome == history.OK:
			if f := g.acquire(h).Fence; f > 0 && (!known || f > g.Ops[b.grant].Fence) {
				best[op.Key] = back{h.acquire, int32(i)}
			}
		case !known || !isGrant(op) || op.Fence == 0 || op.Fence >= g.Ops[b.grant].Fence:
		case plus(g.Ops[b.release].Return, g.anySlack()) <= op.Return && g.Ops[b.grant].Return > op.Call:
			if by := r.alive(h); by < history.Forever &&
				g.forgotten(op.Key, min(op.Call, g.Ops[b.grant].Call), by) == nil {
				g.disorder(history.Regressed, b.grant, b.release, int32(i))
			}
		}
	}
}

// alive is a time by which a hold has shown that it was alive at its answer or later. Either its lease cannot have
// ended before the answer, or an extension or the release succeeded. It is Forever if nothing shows that.
func (r *ruler) alive(h *hold) time.Duration {
	if h.Return < r.granted(h) {
		return h.Return
	}
	for _, n := range append(r.c.extends(h), h.Release) {
		if n >= 0 && r.c.Ops[n].Outcome == history.OK && r.c.Ops[n].Call >= h.Return {
			return r.c.Ops[n].Return
		}
	}
	return history.Forever
}

// resource finds stores that the counter accepted although an older store had a greater token. The older store is the
// one that was replaced, or one that had returned before the call. Rejecting a store is correct.
func (g *fences) resource() {
	store := func(op *history.Op) bool { return op.Kind == history.Store && op.Key >= 0 && op.Fence != 0 }
	storeOrEnd := func(op *history.Op) bool { return store(op) || op.Kind == history.Final }
	g.inRealTime(storeOrEnd, func(i int32) int64 {
		if g.Ops[i].Kind == history.Final {
			return -1
		}
		return g.fence(i)
	}, func(i, older int32) {
		op := &g.Ops[i]
		if op.Kind == history.Final {
			if g.Fenced && older >= 0 && g.outdated(op, older) {
				g.disorder(history.StaleStore, older, i, g.at(op.Seen))
			}
			return
		}
		if op.Outcome == history.Failed && op.Reason == history.Fenced {
			g.refused++
		}
		if op.Outcome != history.OK {
			return
		}
		if p := g.at(op.Seen); p >= 0 && store(&g.Ops[p]) && g.Ops[p].Key == op.Key && g.Ops[p].Fence > op.Fence {
			older = p
		}
		if older < 0 || g.Ops[older].Fence <= op.Fence {
			return
		}
		if !g.Fenced {
			g.unfenced++
			return
		}
		g.disorder(history.StaleStore, older, -1, i)
	})
}

// outdated reports whether a page ends with a store that the counter took after an acknowledged one with a greater
// token. The last store had no answer, and it is not among those that the acknowledged one followed.
func (g *fences) outdated(end *history.Op, acknowledged int32) bool {
	n := g.at(end.Seen)
	if n < 0 || end.Outcome != history.OK || g.Ops[n].Kind != history.Store || g.Ops[n].Fence == 0 ||
		g.Ops[n].Outcome != history.Unknown || g.Ops[n].Fence >= g.Ops[acknowledged].Fence {
		return false
	}
	at := acknowledged
	for most := len(g.Ops); at >= 0 && at != n && g.Ops[at].Seen != 0 && most > 0; most-- {
		at = g.at(g.Ops[at].Seen)
	}
	return at != n
}

func (g *fences) verdict() Verdict {
	v := Verdict{Exposed: g.compared, Misses: map[string]int64{}}
	if g.refused > 0 {
		v.Misses["fenced"] = g.refused
	}
	if g.unfenced > 0 {
		v.Misses["stale stores of a counter without a fence"] = g.unfenced
	}
	worst := g.into(&v, fenceCauses)
	switch {
	case v.Status == Fail:
		for _, i := range [3]int32{worst.first, worst.back, worst.second} {
			if i < 0 {
				continue
			}
			op, token := &g.Ops[i], ""
			if i != worst.back {
				token = fmt.Sprintf(" with fencing token %d", op.Fence)
			}
			v.Evidence = append(v.Evidence, *op)
			v.Story = append(v.Story, fmt.Sprintf("%s: %s %s%s, called at %s, returned at %s", who(op.Worker), op.Kind,
				op.Outcome, token, clock(op.Call), clock(op.Return)))
		}
		v.Summary = fmt.Sprintf("%s faults in the order of %s fencing tokens: %s", human.Count(v.Violations),
			human.Count(g.grants), v.Cause)
	case g.excused > 0:
		v.Summary = g.excuseText("fencing tokens out of order")
	case g.grants < 2:
		v.Summary = "fewer than two grants have no order"
	case g.compared < min(enoughHandOffs, g.grants/2):
		v.Summary = fmt.Sprintf("only %s of %s grants came after another for certain: "+
			"the processes' clocks may differ by %s",
			human.Count(g.compared), human.Count(g.grants), human.Duration(g.differ()))
	default:
		v.Status = Pass
		v.Summary = fmt.Sprintf("%s fencing tokens in order: %s; %s stale stores refused",
			human.Count(g.grants), atMost(g.grants), human.Count(g.refused))
	}
	return v
}
