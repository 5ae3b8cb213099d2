package checker

import (
	"cmp"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/model"
)

// mostOfAPart is the largest number of states that are searched for the story of a part of a page.
const mostOfAPart = 10_000

// story explains holds of a page. It makes a story of all of them, then one for each machine and each process, whose
// clocks agree better. A story of some holds is valid whatever the other holds did. So the story with the highest cost
// is returned.
func (c *Case) story(holds []int32) (page *pages, worst model.Story) {
	if text := c.beyondModel(); text != "" {
		return nil, model.Story{Status: model.NotModelled, Missing: text}
	}
	for _, g := range c.groups(holds) {
		p := c.page(g.holds, g.scope)
		s := model.Explain(p.Page, model.Bounds{States: mostOfAPart, All: 100 * mostOfAPart})
		if page == nil || cmp.Or(cmp.Compare(s.Status, worst.Status), cmp.Compare(s.Cost, worst.Cost)) > 0 {
			page, worst = p, s
		}
	}
	return page, worst
}

// beyondModel says what the model does not support; empty if nothing.
func (c *Case) beyondModel() string {
	switch {
	case !c.Claims.Excludes:
		return "locks that do not exclude"
	case c.Service:
		return "services"
	}
	return ""
}

// pages converts the pages of a case for the model.
type pages struct {
	*ruler
	*model.Page
	holds []int32   // number of a hold in the page -> its index in the case
	why   []*window // number of a window in the page -> the window
}

// rulesOf returns the rules by which the servers of a history keep their promises.
func rulesOf(h *history.History) model.Rules {
	return model.Rules{Expires: h.Claims.Expires, Owned: h.Claims.Owned, Single: h.Nodes == 1, Sites: h.Sites,
		Rate: h.Bounds.Rate, Round: h.Bounds.Round, Linger: h.Bounds.Linger, Patient: patientCall}
}

// page describes some holds of a page for the model.
func (c *Case) page(holds []int32, s scope) *pages {
	p := &pages{ruler: &ruler{c: c, scope: s}, holds: holds, Page: &model.Page{Rules: c.rules}}
	half := c.anySlack()
	for i, n := range holds {
		h := &c.holds[n]
		half = min(half, p.half(h))
		p.Holds = append(p.Holds, model.Hold{ID: c.acquire(h).ID})
		p.add(h, int32(i), h.acquire)
		for _, x := range c.extends(h) {
			p.add(h, int32(i), x)
		}
		for _, x := range c.reenters(h) {
			p.inner(h, int32(i), x)
		}
		if h.Release >= 0 {
			p.add(h, int32(i), h.Release)
		} else if h.ending == maybe || h.upgraded { // the worker died, its record ends, or an upgrade freed the hold
			p.Calls = append(p.Calls, model.Call{Hold: int32(i), Kind: model.Release, Unanswered: true,
				From: h.releaseCall - p.half(h), To: history.Forever})
		}
		for _, x := range c.sentAgain[n] {
			p.add(h, int32(i), x)
		}
	}
	if len(holds) > 0 {
		p.unheld(c.holds[holds[0]].Key)
		p.sights(c.holds[holds[0]].Key, holds)
		p.atWork(c.holds[holds[0]].Key, c.anySlack()-half)
	}
	return p
}

// apart is the largest error of a process's clock against the clocks of the page's holds, beyond their own errors.
// Holds of one process have no errors among themselves, but another process may have looked into the server.
func (p *pages) apart(process int16) time.Duration {
	switch {
	case p.scope == everywhere:
		return p.half(&hold{Process: process})
	case p.scope == asRead && process == p.c.holds[p.holds[0]].Process:
		return 0
	}
	return p.c.anySlack()
}

// unheld adds the releases by workers that held nothing. In the model, each of these releases has a hold of its own,
// which was never granted.
func (p *pages) unheld(key int32) {
	from, to := history.Forever, time.Duration(0)
	for _, n := range p.holds {
		from, to = min(from, p.c.holds[n].Call), max(to, p.c.holds[n].Return, p.assured(&p.c.holds[n]))
	}
	for _, i := range p.c.unheld {
		if op := &p.c.Ops[i]; op.Key == key && from < op.Return && op.Call < to {
			p.Holds = append(p.Holds, model.Hold{ID: op.ID})
			apart := p.apart(op.Process)
			p.Calls = append(p.Calls, model.Call{ID: op.ID, Hold: int32(len(p.Holds) - 1), Kind: model.Release,
				From: op.Call - apart, To: plus(op.Return, apart)})
		}
	}
}

// add adds a call of a hold to the page. A call that failed is added only if its answer says that the lock was not the
// caller's. Other refusals say nothing.
func (p *pages) add(h *hold, place, i int32) {
	op := &p.c.Ops[i]
	half := p.half(h)
	call := model.Call{ID: op.ID, Hold: place, From: op.Call - half, To: plus(op.Return, half), TTL: op.TTL}
	switch {
	case op.Kind == history.Extend:
		call.Kind = model.Extend
	case op.Kind == history.Release:
		call.Kind = model.Release
	case i != h.acquire:
		call.Kind, call.Anew = model.Extend, op.Value <= 1
	}
	p.ends(&call, op)
	call.Open = call.Open || call.Kind <= model.Extend && p.c.unseen(h)
	switch {
	case op.Outcome == history.Unknown || op.Return == history.Forever, p.c.announced(h, op),
		call.Kind == model.Release && p.c.mayBeInner(h, op):
		call.Unanswered, call.To = true, history.Forever
	case op.Outcome == history.Failed && op.Reason == history.Lost:
		// the release may have had an effect when it was sent the first time, or it may have freed a few sites
		if p.repeated(i) || p.c.Sites > 1 && op.Kind == history.Release {
			first := call
			first.Unanswered, first.To = true, history.Forever
			p.Calls = append(p.Calls, first)
		}
		call.Kind = model.Lost
	case op.Outcome == history.Failed && (op.Reason == history.Busy || op.Reason == history.Conflict && p.alone(h, op)):
		call.Kind, call.Busy = model.Lost, true
	case op.Outcome == history.Failed && (op.Kind != history.Release || op.Reason == history.Conflict):
		return
	case op.Outcome == history.Failed: // an error of its last command tells nothing of those before it
		call.Unanswered, call.To = true, history.Forever
	}
	p.Calls = append(p.Calls, call)
}

// ends sets what the answer to a call says about the end of the lease, unless that follows from the request.
func (p *pages) ends(call *model.Call, op *history.Op) {
	if !p.c.Claims.Expires || op.Until == 0 || op.Until == history.Forever || op.Outcome != history.OK {
		return
	}
	switch {
	case call.Kind > model.Extend:
	case op.TTL == 0:
		call.Open, call.TTL = true, max(op.Until-op.Call, 1)
	case p.c.Claims.Begins && op.Kind == history.Extend && p.promised(op) < plus(op.Call, p.Least(op.TTL)):
		call.Open, call.TTL = true, max(p.promised(op)-op.Call, 1)
	case p.c.Claims.Begins && op.Kind == history.Acquire:
		call.From -= max(plus(op.Call, p.Least(op.TTL))-p.promised(op), 0)
	}
}

// inner adds a re-entry or an inner release to the page. Neither of them frees the lock, and each may extend
// the lease.
func (p *pages) inner(h *hold, place, i int32) {
	op := &p.c.Ops[i]
	switch {
	case op.Outcome == history.Failed || slices.Contains(p.c.extends(h), i):
	case op.Kind != history.Release:
		p.add(h, place, i)
	default:
		call := model.Call{ID: op.ID, Hold: place, Kind: model.Extend, Unanswered: true, TTL: h.TTL,
			From: op.Call - p.half(h), To: history.Forever}
		p.Calls = append(p.Calls, call)
		if p.c.mayBeInner(h, op) {
			call.Kind, call.ID = model.Release, 0
			p.Calls = append(p.Calls, call)
		}
	}
}

// mayBeInner reports whether a release may be an inner one, which does not free the lock, because an earlier call has
// no answer, or may have been a new grant.
func (c *Case) mayBeInner(h *hold, release *history.Op) bool {
	return c.reentered(h, release.Call) || h.anew && h.doubtful || h.doubtful && slices.ContainsFunc(c.reenters(h),
		func(i int32) bool { return c.Ops[i].Outcome == history.Unknown && c.Ops[i].Call < release.Call })
}

// alone reports whether no other call of a hold can have taken effect during a call. If the hold changed during the
// call, a refusal is right.
func (p *pages) alone(h *hold, op *history.Op) bool {
	for _, n := range append(slices.Clip(p.c.extends(h)), h.Release) {
		if n >= 0 && p.c.Ops[n].ID != op.ID && p.c.Ops[n].Call < op.Return &&
			(p.c.Ops[n].Outcome == history.Unknown || p.c.Ops[n].Return > op.Call) {
			return false
		}
	}
	return true
}

// sights adds the records of holds' keys that were seen on the only server. It adds none if leases may begin before
// the request: then one key may belong to several holds in turn. If the lock does not clean up, a key may stay after
// its hold, so records of later times are left out.
func (p *pages) sights(key int32, holds []int32) {
	if p.c.Nodes > 1 || p.c.Sites > 1 || p.c.Claims.Begins || len(p.c.sightsOf(key)) == 0 {
		return
	}
	for i, n := range holds {
		h := &p.c.holds[n]
		for _, op := range p.c.ownSights(h) {
			apart := p.apart(op.Process)
			from, to := op.Call-apart, plus(op.Return, apart)
			// an Acquire with several commands may restart its lease
			if from < h.Return || op.Kind == history.Found && (h.Release >= 0 || op.Until <= op.Call) {
				continue // another checker judges what a release left
			}
			if !p.c.Claims.Cleans && to >= min(h.releaseCall, p.assured(h)) {
				continue
			}
			p.Calls = append(p.Calls, model.Call{ID: op.ID, Hold: int32(i), Kind: model.Seen, From: from, To: to,
				Server: int(op.Value), Endless: p.overlong(h, op)})
		}
	}
}

// overlong reports whether a key was seen with a later end than its lease. Its token and its expiry are read one after
// the other. So a TTL of up to a lease may belong to the next hold, unless this hold went on.
func (p *pages) overlong(h *hold, sight *history.Op) bool {
	if !p.c.Claims.Cleans || !p.c.Claims.Expires || h.TTL == 0 || sight.Until == history.Forever {
		return p.c.Claims.Cleans && p.c.Claims.Expires && h.TTL > 0
	}
	slack := p.c.anySlack()
	goes := plus(sight.Return, slack) < min(h.releaseCall, p.assured(h)) && len(p.c.reenters(h)) == 0 &&
		p.c.forgot(h, sight.Return) == nil
	later := sight.Until > plus(p.latest(h), sight.Return-sight.Call+slack)
	return (sight.Until-sight.Return > p.c.lease || goes && later) && p.c.stretched(h.Call, sight.Return) == nil
}

// atWork adds the windows in which servers may forget, or extend, what they have of a key. It widens them by the slack
// between the suite's clock and the clocks of the calls.
func (p *pages) atWork(key int32, slack time.Duration) {
	from, to := history.Forever, -history.Forever
	for i := range p.Calls {
		if from = min(from, p.Calls[i].From); !p.Calls[i].Unanswered {
			to = max(to, p.Calls[i].To)
		}
	}
	add := func(w *window, planned bool) {
		if !w.meets(from-slack, plus(to, slack)) {
			return
		}
		e, server := w.effect, int(p.c.Ops[w.op].Value)
		if w.fault || p.c.Sites > 1 { // each of several sites has all keys
			server = -1
		}
		p.why = append(p.why, w)
		p.Windows = append(p.Windows, model.Window{From: w.from - slack, To: plus(w.to, slack), Planned: planned,
			Op: w.op, Server: server, Forgets: true, Revives: e.Loses == history.LosesTime,
			Restores: !planned || !e.Known() || e.Loses == history.LosesWrites,
			Late:     planned && (!e.Known() || e.Loses == history.LosesTime)})
	}
	for _, w := range p.c.planned.all {
		add(w, true)
	}
	for _, w := range p.c.losses(key).all {
		add(w, false)
	}
	p.survive()
}

// survive notes which holds were not lost in which windows. Only answers before another grant show that.
func (p *pages) survive() {
	place := map[*window]int32{}
	for n, w := range p.why {
		place[w] = int32(n)
	}
	all := newReaching(slices.Clone(p.why))
	for i, k := range p.holds {
		h := &p.c.holds[k]
		by, end := p.latest(h), history.Forever
		if h.answer == history.OK {
			end = h.releaseReturn
		}
		for w := range all.between(h.Call, min(by, end)) {
			if p.c.survived(h, w, by) && p.c.survived(h, w, p.another(k, max(w.from, h.Call), by)) {
				p.Holds[i].Survives = append(p.Holds[i].Survives, place[w])
			}
		}
	}
}

// another returns the time, at most `by`, until which no other hold than k can have been granted since a moment.
func (p *pages) another(k int32, since, by time.Duration) time.Duration {
	for _, n := range p.holds {
		if h := &p.c.holds[n]; n != k && h.Outcome == history.OK && h.Return >= since {
			by = min(by, h.Call)
		}
	}
	return by
}
