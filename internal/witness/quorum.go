package witness

import (
	"slices"
	"time"

	"hammerlock/history"
)

// roundBound is the longest time after a request's call until its reply and its effects are known, or are known to be
// missing.
const roundBound = answerBound + 2*effectBound

// do adds an act. If the lock has several sites, the act first waits for the same act on other sites.
func (r *Reader) do(b *book, a act) {
	if r.o.Sites == 1 {
		r.done(b, a)
		return
	}
	a.hold = nil // it is found when the grant is known
	b.acts = append(b.acts, a)
}

// tick turns acts on several sites into operations, in the order of their calls, once they are old enough.
func (b *book) tick(r *Reader, now time.Duration) {
	if len(b.acts) == 0 {
		return
	}
	slices.SortStableFunc(b.acts, func(x, y act) int { return int(x.op.Call - y.op.Call) })
	for len(b.acts) > 0 && b.acts[0].op.Call < now-roundBound {
		first, seen := b.acts[0], map[int]bool{}
		var round, rest []act
		for _, a := range b.acts {
			same := a.kind == first.kind && a.token == first.token
			if same && seen[a.server] {
				seen, first.token = map[int]bool{}, "\x00" // the next try begins
				same = false
			}
			if same {
				seen[a.server] = true
				round = append(round, a)
			} else {
				rest = append(rest, a)
			}
		}
		b.acts = rest
		r.majority(b, round)
	}
}

// majority combines the acts of one round, at most one from each server, into one act. It was successful if it was on
// a majority of the servers. For a release, one server is enough.
func (r *Reader) majority(b *book, round []act) {
	a, yes, unsure, quorum := round[0], 0, 0, r.o.Sites/2+1
	for _, o := range round {
		if o.says == did {
			yes++
			if o.op.Outcome == history.Unknown {
				unsure++
			}
			if o.op.TTL > 0 && (a.op.TTL == 0 || o.op.TTL < a.op.TTL) {
				a.op.TTL = o.op.TTL
			}
		}
		if o.op.Return != history.Forever && (a.op.Return == history.Forever || o.op.Return > a.op.Return) {
			a.op.Return = o.op.Return
		}
	}
	a.op.Outcome, a.op.Reason = history.OK, history.None
	switch certain := yes - unsure; {
	case a.kind == history.Release && certain > 0, certain >= quorum:
		a.says = did
	case yes >= quorum || a.kind == history.Release && yes > 0 || a.op.Return == history.Forever:
		a.says, a.op.Outcome = did, history.Unknown
	default:
		a.says, a.op.Outcome, a.op.Reason = didNot, history.Failed, history.Lost
		if a.kind == history.Acquire {
			a.op.Reason = history.Quorum
		}
	}
	if a.kind != history.Acquire {
		if a.hold = b.of(a.token); a.hold == nil && a.q != nil && !a.q.hasToken(a.token) {
			a.hold, a.guess = r.holder(b, a.q, nil)
		}
		if a.hold == nil || a.op.Outcome == history.Failed && a.kind == history.Extend && yes > 0 {
			return
		}
	}
	r.done(b, a)
}

// done turns an act into an operation.
func (r *Reader) done(b *book, a act) {
	switch {
	case a.kind == history.Acquire && a.says == didNot:
		r.refuse(b, a.q, a.op, a.token)
	case a.kind == history.Acquire:
		r.grant(b, a)
	case a.hold == nil:
	case a.kind == history.Extend:
		r.extend(a.q, a.hold, a.op, a.guess)
	default:
		r.releases(b, &a)
		r.free(b, a.q, a.hold, a.op, a.guess)
	}
}

// end turns all remaining acts into operations.
func (b *book) end(r *Reader) {
	b.tick(r, history.Forever)
	r.Unreleased += int64(len(b.holds))
}
