package checker

import (
	"slices"

	"hammerlock/history"
	"hammerlock/model"
)

// late finds the cause of a store after the holder's deadline. If servers lost the counter of fencing tokens, they are
// to blame. If a fence accepted the store otherwise, the tokens are not in the order of the grants. In all other cases
// the holder stored too late. It is excused if its process was paused for at least half of the time by which the store
// was late.
func (x *examiner) late(p pair) finding {
	h, o := &x.c.holds[p.first], &x.c.holds[p.second]
	if w := x.c.unfenced(h, o); w != nil {
		return finding{cause: history.ServiceLoss, pair: p, op: w.op, why: w}
	}
	if x.sweeper.regressed(h, o) {
		return finding{cause: history.Regressed, pair: p, op: h.Uses[1]}
	}
	if x.c.Claims.Renews && h.Lost > h.stored && h.back() > h.stored { // the lock had to renew it
		return x.unrenewed(p)
	}
	return finding{cause: history.Overrun, pair: p, op: h.Uses[1],
		why: x.c.overran(h.Process, h.Return, h.given(), h.stored, (h.stored-h.given())/2)}
}

// loss handles a grant that contradicts the servers' promises to an earlier hold.
func (x *examiner) loss(p pair) {
	if len(x.losses) < keptLosses {
		x.losses = append(x.losses, p)
	}
	if !x.blamed[p.second] {
		x.blamed[p.second] = true
		x.add(x.worst(p))
	}
}

// worst returns the finding for a pair. If the pair has an excuse, it also looks at the other readers that the same
// writer collided with, and prefers a finding without an excuse. An event may excuse a writer's grant beside one
// reader, but not beside another one.
func (x *examiner) worst(p pair) finding {
	f := x.broken(p)
	for q := range x.besides(p) {
		if f.why == nil {
			break
		}
		if g := x.broken(q); g.why == nil || unplanned(f.why) != nil && g.why.fault {
			f = g
		}
	}
	return x.c.shown(f)
}

// broken finds the cause of a broken promise. It tries four causes in this order. First, a release of a hold that was
// over, if holds share the lock. Second, a slip in the page's story that explains the pair. Third, servers that forgot
// the first hold. Otherwise it is a double grant.
func (x *examiner) broken(p pair) finding {
	i, j := &x.c.holds[p.first], &x.c.holds[p.second]
	t, chain := x.told, []pair{p}
	for q := range x.sweeper.before(p) {
		chain = append(chain, q)
	}
	if t.shared && !t.untold {
		if op := t.freed(x.c, i.Call, j.Return); op >= 0 {
			return finding{cause: history.ForeignRelease, pair: p, op: op}
		}
		var holds []int32
		for _, q := range chain {
			holds = append(holds, q.first, q.second)
		}
		t = x.c.among(holds)
	}
	for _, q := range chain {
		if f, ok := x.c.names(t, q); ok {
			return f
		}
	}
	if w := x.c.forgot(i, x.c.knownBy(j)); w != nil {
		return finding{cause: history.ServiceLoss, pair: p, op: w.op, why: w}
	}
	for q := range x.sweeper.before(p) { // if servers kept the hold before the pair, the pair's first hold began later
		if w := x.c.forgot(&x.c.holds[q.first], x.c.holds[q.second].Return); w != nil {
			return finding{cause: history.ServiceLoss, pair: p, op: w.op, why: w}
		}
	}
	return finding{cause: history.DoubleGrant, pair: p, op: -1}
}

// collision finds the cause if two holders relied on the lock at the same time.
func (x *examiner) collision(p pair) {
	i, j := &x.c.holds[p.first], &x.c.holds[p.second]
	s := x.sweeper
	over := s.assured(i)
	if n := x.told.of(p); n >= 0 && x.told.slips[n].deviates(history.SilentReacquire) {
		x.add(x.worst(p))
		return
	}
	if plus(j.Return, x.c.slack(i.Process, j.Process)) < over {
		x.add(x.worst(p))
		return
	}
	// the first lease had ended, so its holder should not have relied on the lock
	if x.c.Claims.Renews && i.Until > over {
		if f := x.unrenewed(p); f.cause != history.Overrun || i.stored != history.Forever && i.stored > j.Return {
			x.add(f)
		} else {
			x.misses["overrun"]++ // the process was paused, and the holder was told before it stored
		}
		return
	}
	// the deadline may have been right: servers would have kept the lock until then, but they forgot it
	kept := i.Until <= s.latest(i) && x.c.forgot(i, j.Return) != nil
	if proof := x.c.proof(i, history.Forever); i.Until > over && !kept {
		x.add(finding{cause: history.OverClaim, pair: p, op: -1,
			why: x.c.late(i.Process, proof.Call, proof.Return, proof.Return, i.Until-over)})
		return
	}
	x.add(x.worst(p))
}

// unrenewed finds the cause if a lease ended although its holder relied on it: the process was paused, or the lock
// failed to renew.
func (x *examiner) unrenewed(p pair) finding {
	i := &x.c.holds[p.first]
	if op := x.c.presumed(i); op >= 0 {
		return finding{cause: history.OverClaim, pair: p, op: op}
	}
	proof, over := x.c.proof(i, history.Forever), x.sweeper.assured(i)
	since, least := proof.Return, enough(i, proof.Return, over)
	if over-since < Margin(i.TTL) {
		since = proof.Call // when the answer came, too little of the lease was left
	}
	w := x.c.stopped(i.Process, since, over, least)
	// If renewals have no answer, or are not recorded, the last one may have been late. The library learns of the loss
	// when it renews again. So the lease ended at most one lease before the other grant.
	granted := x.c.holds[p.second].Return
	if from := max(since, minus(granted, 2*i.TTL)); w == nil && x.c.unsettled(i, from, granted) {
		w = x.c.stopped(i.Process, from, granted, Margin(i.TTL))
	}
	if w != nil {
		return finding{cause: history.Overrun, pair: p, op: -1, why: w}
	}
	return finding{cause: history.RenewalFailure, pair: p, op: -1, why: x.c.late(i.Process, since, over, over, least)}
}

// doubles reports the double grants of the story that no pair of overlapping holds has shown.
func (x *examiner) doubles() {
	for n := range x.told.slips {
		k := &x.told.slips[n]
		if k.deviates(history.DoubleGrant) && k.against >= 0 && !x.blamed[k.hold] && !x.blamed[k.against] {
			x.blamed[k.hold] = true
			p := pair{k.against, k.hold}
			if k.Kind == model.Seen { // the key shows that the earlier hold went on
				p = pair{k.hold, k.against}
			}
			x.add(x.c.shown(finding{cause: history.DoubleGrant, pair: p, op: -1, follows: k.first != n}))
		}
	}
}

// besides iterates over the readers that the writer of a pair collides with, except the reader of the pair.
func (x *examiner) besides(p pair) func(yield func(pair) bool) {
	return func(yield func(pair) bool) {
		c, s, w := x.c, x.sweeper, &x.c.holds[p.second]
		list, coupled := c.holdsOf(w.Key), c.Sites < 2
		at, _ := slices.BinarySearch(list, p.second)
		if !x.told.shared || w.Permits > 0 {
			return
		}
		hi := s.slot(w, coupled).hi
		for at--; at >= 0 && plus(c.holds[list[at]].Call, c.lease) > w.Call; at-- {
			h := &c.holds[list[at]]
			t := s.slot(h, coupled)
			collides := h.Permits > 0 && h.Outcome == history.OK && list[at] != p.first && t.hi <= w.Call &&
				t.end(t.lo) > hi
			if collides && !yield(pair{list[at], p.second}) {
				return
			}
		}
	}
}
