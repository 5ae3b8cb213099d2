package checker

import (
	"maps"

	"hammerlock/history"
)

// phantoms finds acquires that were reported as refused although their token was in the servers, or was released
// or extended.
func (x *examiner) phantoms() {
	seen := x.unownedTokens()
	for _, n := range x.c.events {
		op := &x.c.Ops[n]
		if op.Kind != history.Extend && (op.Kind != history.Release || !x.c.Claims.Owned) {
			continue
		}
		if a := x.c.op(op.Hold); a != nil && a.Kind == history.Acquire && a.Outcome == history.Failed {
			x.add(finding{cause: x.c.phantom(a), pair: pair{x.c.at(a.ID), -1}, op: n})
		}
	}
	if len(seen) == 0 {
		return
	}
	asked := map[uint64]bool{} // by tries that were refused
	for i := range x.c.Ops {
		op := &x.c.Ops[i]
		if op.Kind != history.Acquire || op.Outcome != history.Failed || op.Token == 0 {
			continue
		}
		token := x.c.mark(op.Token, op.Key)
		n, ok := seen[token]
		if ok {
			asked[token] = true
		}
		switch {
		case !ok || x.c.Ops[n].Call < op.Return:
		case op.Reason == history.Quorum:
			x.misses["minority"]++ // a minority of the sites granted it and could not be asked to release it
		case x.c.partial(op) && x.c.forgotten(op.Key, op.Call, x.c.Ops[n].Return) != nil:
			x.misses["given back around a fault"]++
		default:
			x.add(finding{cause: x.c.phantom(op), pair: pair{int32(i), -1}, op: n})
		}
	}
	maps.DeleteFunc(seen, func(token uint64, _ int32) bool { return asked[token] })
	x.strays(seen)
}

// unownedTokens are the tokens that were seen in the servers and belong to no hold, with the last operation that saw
// each. What is seen during the run on one of several sites does not count: a minority's grant may be on its way out.
func (x *examiner) unownedTokens() map[uint64]int32 {
	seen := map[uint64]int32{}
	for _, n := range x.c.events {
		op := &x.c.Ops[n]
		if op.Token != 0 && (op.Kind == history.Found || op.Kind == history.Sight && x.c.Sites < 2) {
			seen[x.c.mark(op.Token, op.Key)] = n
		}
	}
	if len(seen) == 0 {
		return nil
	}
	for i := range x.c.holds {
		h := &x.c.holds[i]
		delete(seen, x.c.mark(x.c.acquire(h).Token, h.Key))
	}
	return seen
}
