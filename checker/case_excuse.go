package checker

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"hammerlock/history"
)

// A call took effect between its call and return stamps, whatever the machine did. So a violation that follows from
// stamps alone has no excuse. Two things are excused, and only in this file:
//
// (a) A missed deadline, if the responsible process was paused. The time for which it could not act is deducted. See
// the functions late and kept.
//
// (b) A lost grant: servers may have forgotten it, or a clock that ran ahead may have ended it too early. The grant
// must have come before the loss, and its lease must have lasted until then. Its key must have been on the servers
// that lost data, and no majority of servers may remember it. See the functions forgot and forgotten.
//
// A planned fault is no excuse: such a violation gets a cause of its own. An unplanned event excuses the lock.

// forgot returns the fault or event (window) in which servers may have lost a hold, before the moment `by` and while
// its lease lasted; nil if none exists. A planned fault is preferred.
func (c *Case) forgot(h *hold, by time.Duration) *window {
	r, since, slack := ruler{c: c}, h.Call, c.anySlack()
	if op := c.acquire(h); c.Claims.Begins && op.Until != history.Forever && op.Until > 0 {
		since = min(since, minus(op.Until, r.c.rules.Most(op.TTL)))
	}
	by = min(by, r.latest(h))
	for _, list := range [2]*reaching{&c.planned, c.losses(h.Key)} {
		for w := range list.between(minus(since, slack), plus(by, slack)) {
			if !c.survived(h, w, by) {
				return w
			}
		}
	}
	return nil
}

// survived reports whether answers before the moment `by` show that a hold was not lost in a window. Either the lock
// answered after the window that the hold goes on: its only server, or a majority of sites. Or the hold's key was seen
// afterwards on every server that the window may have emptied, or it is on a majority of several sites.
func (c *Case) survived(h *hold, w *window, by time.Duration) bool {
	slack := c.anySlack()
	after := plus(w.to, slack)
	for _, i := range c.extends(h) {
		op := &c.Ops[i]
		if (c.Nodes == 1 || c.Sites > 1) && op.Outcome == history.OK && op.Call > after && op.Return <= by &&
			(op.Kind == history.Extend || op.Value > 1) {
			return true
		}
	}
	seen := c.lastSeen(h, by)
	if c.Sites > 1 {
		maps.DeleteFunc(seen, func(site int64, at time.Duration) bool {
			return slices.ContainsFunc(c.servers, func(v *window) bool {
				return c.losing(v.effect) && c.empties(v, site) && v.meets(minus(at, slack), after)
			})
		})
		return len(seen) > c.Sites/2
	}
	for server := range int64(max(c.Nodes, 1)) {
		if c.Nodes == 0 || c.Ops[w.op].Kind == history.Incident {
			server = c.Ops[w.op].Value
		}
		if seen[server] <= after {
			return false
		}
	}
	return c.Nodes > 0 || c.Ops[w.op].Kind == history.Incident
}

// empties reports whether a window may have emptied a server. It is not known which servers a planned fault hits.
func (c *Case) empties(w *window, server int64) bool {
	return c.Ops[w.op].Kind == history.Fault || c.Ops[w.op].Value == server
}

// lastSeen returns, for each server, when a hold's key was seen there last before the moment `by`.
func (c *Case) lastSeen(h *hold, by time.Duration) map[int64]time.Duration {
	token, seen := c.acquire(h).Token, map[int64]time.Duration{}
	list := c.sightsOf(h.Key)
	at, _ := slices.BinarySearchFunc(list, h.Call, func(op *history.Op, t time.Duration) int {
		return cmp.Compare(op.Return, t)
	})
	for ; token != 0 && at < len(list) && list[at].Return <= by; at++ {
		if op := list[at]; op.Token == token {
			seen[op.Value] = max(seen[op.Value], op.Call)
		}
	}
	return seen
}

// losing reports whether a fault or event with an effect may make servers lose a grant. A fault that spares a majority
// of sites is enough for that, since a bare majority may have granted the lock.
func (c *Case) losing(e *history.Effect) bool {
	return e.BreaksPromises() || c.Sites > 1 && e.Loses != history.NoLoss
}

// forgotten returns a fault or event (window) in which servers may have lost, between two moments, what they stored
// for a key; nil if none exists. A planned fault is preferred.
func (c *Case) forgotten(key int32, since, by time.Duration) *window {
	return c.first(since, by, &c.planned, c.losses(key))
}

// first searches the lists in the given order, and returns a window that was in force between two moments; nil if none
// exists. Windows have times of the suite's clock, and moments have times of a worker's clock. So the largest
// difference between the clocks (slack) is added at both ends.
func (c *Case) first(since, by time.Duration, lists ...*reaching) *window {
	slack := c.anySlack()
	for _, list := range lists {
		if w := list.find(minus(since, slack), plus(by, slack)); w != nil {
			return w
		}
	}
	return nil
}

// unfenced returns the fault or event (window) that may explain why a fence accepted an earlier holder while a later
// one used the page; nil if none exists. It made the servers lose the counter of fencing tokens, so the later grant
// has no greater token. A wrong clock cannot cause that.
func (c *Case) unfenced(earlier, later *hold) *window {
	fences := cmp.Compare(c.acquire(earlier).Fence, c.acquire(later).Fence)
	if cmp.Or(fences, cmp.Compare(later.Return, earlier.Return)) < 0 {
		earlier, later = later, earlier
	}
	if !c.Fenced || later.Return < earlier.Call {
		return nil
	}
	return c.first(earlier.Call, later.Return, &c.emptied, c.losses(later.Key))
}

// accident returns an unplanned event that may have made the servers lose, between two moments, what they stored for a
// key. It returns nil if none exists, or if a planned fault may be the reason.
func (c *Case) accident(key int32, since, by time.Duration) *window {
	return unplanned(c.forgotten(key, since, by))
}

// unplanned returns the window w, or nil if it belongs to a fault.
func unplanned(w *window) *window {
	if w != nil && w.fault {
		return nil
	}
	return w
}

// miscounted returns an unplanned event that may have made the counter's server forget stores on a page.
func (c *Case) miscounted(key int32, since, by time.Duration) *window {
	if c.Counter == history.CounterOnTopology {
		return c.accident(key, since, by)
	}
	return c.first(since, by, &c.counter)
}

// stretched returns the fault that may have made a lease longer: a server's clock was slow, or was set back.
func (c *Case) stretched(from, to time.Duration) *window {
	return c.atWork(from, to, func(e *history.Effect) bool { return !e.Known() || e.Loses == history.LosesTime })
}

// atWork returns the first planned fault that was in force between two moments and whose effect passes the test `can`;
// nil if none exists.
func (c *Case) atWork(from, to time.Duration, can func(*history.Effect) bool) *window {
	for _, w := range c.servers {
		if w.fault && w.meets(from, to) && can(w.effect) {
			return w
		}
	}
	return nil
}

// findLosses fills three lists of windows in which servers may forget something: planned faults, unplanned events of
// the lock's servers, and unplanned events of the counter's server. If the history does not say how many nodes the
// lock has, any server may be the counter's.
func (c *Case) findLosses() {
	plan, emptied, counter := c.roles, slices.Clone(c.roles), []*window(nil)
	for i := range c.windows {
		w := &c.windows[i]
		kind := c.Ops[w.op].Kind
		if kind != history.Gap {
			c.servers = append(c.servers, w)
		}
		if w.fault && c.losing(w.effect) {
			plan = append(plan, w)
			// a cut link may end sessions, and loses no other data
			if own := c.Faults[c.Ops[w.op].Value].Effect.Loses; w.effect.Loses != history.LosesTime &&
				(own != history.NoLoss || !w.effect.Known()) {
				emptied = append(emptied, w)
			}
		}
		if kind != history.Incident && kind != history.Role {
			continue
		}
		// the loss of one site matters even if a majority is left: a bare majority may have granted the lock
		if w.effect.Loses != history.NoLoss {
			c.forgetful = append(c.forgetful, w)
		}
		if w.effect == counting || c.Nodes == 0 {
			v := *w
			if v.to == history.Forever {
				v.to = c.countsAgain(v.from)
			}
			counter = append(counter, &v)
		}
	}
	c.planned, c.emptied, c.counter = newReaching(plan), newReaching(emptied), newReaching(counter)
	c.whole, c.ofKey = newReaching(slices.Clone(c.forgetful)), map[int32]*reaching{}
}

// losses returns the unplanned events (windows) in which servers may have lost what they stored for a key. An event
// without an end lasts until an answer shows that its server lost nothing.
func (c *Case) losses(key int32) *reaching {
	if len(c.forgetful) == 0 {
		return &c.whole
	}
	if r := c.ofKey[key]; r != nil {
		return r
	}
	var list []*window
	var wholes []period
	for _, w := range c.forgetful {
		if c.elsewhere(key, w) {
			continue
		}
		if w.to == history.Forever && c.Sites < 2 { // a majority does not tell what one site has
			if wholes == nil {
				wholes = c.wholes(key)
			}
			v, after := *w, c.outage(w.from)
			n, _ := slices.BinarySearchFunc(wholes, after+1, func(p period, t time.Duration) int {
				return cmp.Compare(p.from, t)
			})
			if n < len(wholes) {
				v.to = wholes[n].to
			}
			w = &v
		}
		list = append(list, w)
	}
	r := newReaching(list)
	c.ofKey[key] = &r
	return &r
}

// elsewhere reports whether a server never had a key, so that its failure cannot have lost the key. The key was seen
// after the failure, and never on this server. The result is false for independent sites, which all have every key.
func (c *Case) elsewhere(key int32, w *window) bool {
	if c.Sites > 1 {
		return false
	}
	seen, after := c.sightsOf(key), w.to
	if after == history.Forever {
		after = w.from
	}
	return !slices.ContainsFunc(seen, func(op *history.Op) bool { return op.Value == c.Ops[w.op].Value }) &&
		slices.ContainsFunc(seen, func(op *history.Op) bool { return op.Call > after })
}

// sightsOf lists the records of a key that was seen on the servers.
func (c *Case) sightsOf(key int32) []*history.Op {
	if c.sights == nil {
		c.sights = map[int32][]*history.Op{}
		for _, i := range c.events {
			if op := &c.Ops[i]; (op.Kind == history.Sight || op.Kind == history.Found) && op.Outcome != history.Failed {
				c.sights[op.Key] = append(c.sights[op.Key], op)
			}
		}
	}
	return c.sights[key]
}

// ownSights lists the records of a hold's key with the hold's token. The list is empty if another hold of the page has
// the same token.
func (c *Case) ownSights(h *hold) []*history.Op {
	all, token := c.sightsOf(h.Key), c.acquire(h).Token
	if len(all) == 0 || token == 0 {
		return nil
	}
	by, known := c.sightsBy[h.Key]
	if !known {
		by = map[uint64][]*history.Op{}
		for _, op := range all {
			by[op.Token] = append(by[op.Token], op)
		}
		owned := map[uint64]bool{}
		for _, n := range c.holdsOf(h.Key) {
			t := c.acquire(&c.holds[n]).Token
			if owned[t] {
				delete(by, t)
			}
			owned[t] = true
		}
		if c.sightsBy == nil {
			c.sightsBy = map[int32]map[uint64][]*history.Op{}
		}
		c.sightsBy[h.Key] = by
	}
	return by[token]
}

// wholes lists periods in which a server still had the key, because an extension or a release succeeded. Each period
// begins with the call of such an operation. It ends with the earliest return among this operation and all later ones.
// The list is sorted by call.
func (c *Case) wholes(key int32) (list []period) {
	for _, n := range c.holdsOf(key) {
		h := &c.holds[n]
		for _, i := range append(c.extends(h), h.Release) {
			if i >= 0 && c.Ops[i].Outcome == history.OK && c.Ops[i].Call > h.Return {
				list = append(list, period{c.Ops[i].Call, c.Ops[i].Return})
			}
		}
	}
	slices.SortFunc(list, func(a, b period) int { return cmp.Compare(a.from, b.from) })
	for i := len(list) - 2; i >= 0; i-- {
		list[i].to = min(list[i].to, list[i+1].to)
	}
	return list
}

// outage returns the time by which clients had noticed the loss of a server. It looks at calls that began within one
// second after the loss and had no answer, or did not reach a server. The result is the latest return of these calls;
// the time of the loss if there are none.
func (c *Case) outage(lost time.Duration) time.Duration {
	if c.unheardOf == nil {
		inTheWay := func(e *history.Effect) bool { return e.Blocks || e.Hit(history.Links) }
		c.unheardOf = []period{}
		for i := range c.Ops {
			op := &c.Ops[i]
			switch op.Reason {
			case history.Unreachable, history.Refused, history.Timeout, history.Dropped:
				if op.Worker >= 0 && c.atWork(op.Call, op.Latest(), inTheWay) == nil {
					c.unheardOf = append(c.unheardOf, period{op.Call, op.Latest()})
				}
			}
		}
		slices.SortFunc(c.unheardOf, func(a, b period) int { return cmp.Compare(a.from, b.from) })
	}
	over := lost
	n, _ := slices.BinarySearchFunc(c.unheardOf, lost, func(p period, t time.Duration) int {
		return cmp.Compare(p.from, t)
	})
	for ; n < len(c.unheardOf) && c.unheardOf[n].from <= lost+noticed; n++ {
		over = max(over, c.unheardOf[n].to)
	}
	return over
}

// countsAgain returns the first time after a loss at which an answer shows that the counter's server still has the
// counts; Forever if none does.
func (c *Case) countsAgain(lost time.Duration) time.Duration {
	after := c.outage(lost)
	for i := range c.Ops {
		op := &c.Ops[i]
		if (op.Kind == history.Load || op.Kind == history.Store) && op.Outcome == history.OK && op.Call > after &&
			(op.Seen != 0 || op.Value > 1) {
			return op.Return
		}
	}
	return history.Forever
}

// Effects of unplanned events. A server that failed may have lost its keys. A server that took another role may lack
// the last writes. If one of several independent sites fails, a majority is left: see findLosses.
var (
	failing = &history.Effect{Hits: []history.Party{history.Servers}, Loses: history.LosesKeys, Blocks: true}
	ofASite = &history.Effect{Hits: []history.Party{history.Servers}, Loses: history.LosesKeys, Blocks: true,
		Spares: true}
	changing = &history.Effect{Hits: []history.Party{history.Servers}, Loses: history.LosesWrites, Blocks: true}
	// for a server that has only the counter and no locks, or a process without workers
	counting = &history.Effect{Hits: []history.Party{history.Nobody}}
	stoodFor = &history.Effect{Hits: []history.Party{history.Clients, history.Holders}, Blocks: true}
)
