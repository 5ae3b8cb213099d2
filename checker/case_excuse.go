package checker

import (
	"cmp"
	"slices"
	"time"

	"hammerlock/history"
)

// What stamps prove needs no excuse: a call took effect between its call and its return, whatever the machine did. Two
// things are excused, and only here:
//
// (a) a duty with a deadline, by the time in which the process that had it could not act before the deadline: see late
// and kept; (b) what servers may have forgotten, or run ahead of: what was granted before they did, by a lease that was
// open then, on servers that have the key, if no majority of them remembers: see forgot and forgotten.
//
// What a fault of the plan explains is a violation all the same, with a cause of its own; what was not planned is held
// against no lock.

// forgot finds what may have made the servers give up a hold by a moment, within its lease.
func (c *Case) forgot(h *hold, by time.Duration) *window {
	r, since := ruler{c: c}, h.Call
	if op := c.acquire(h); c.Claims.Begins && op.Until != history.Forever && op.Until > 0 {
		since = min(since, minus(op.Until, r.most(op.TTL)))
	}
	by = min(by, r.latest(h))
	w := c.forgotten(h.Key, since, by)
	if w == nil {
		return nil
	}
	last, sites := c.remembered(h, by)
	switch {
	case c.Sites > 1 && !w.fault && sites > c.Sites/2: // others are no majority
		return nil
	case last > since && c.onlyServer() && (c.Nodes == 1 || !w.fault):
		return c.forgotten(h.Key, last, by)
	}
	return w
}

// remembered reads from the servers' keys what they had not forgotten of a hold by a moment: when its key was seen
// for the last time, and on how many sites no server has failed since then. What is seen after a failure was not lost
// in it.
func (c *Case) remembered(h *hold, by time.Duration) (last time.Duration, sites int) {
	token, seen := c.acquire(h).Token, map[int64]time.Duration{}
	list := c.sightsOf(h.Key)
	at, _ := slices.BinarySearchFunc(list, h.Call, func(op *history.Op, t time.Duration) int {
		return cmp.Compare(op.Return, t)
	})
	for ; token != 0 && at < len(list) && list[at].Return <= by; at++ {
		if op := list[at]; op.Token == token {
			seen[op.Value], last = max(seen[op.Value], op.Call), max(last, op.Call)
		}
	}
	sites = len(seen)
	for node, since := range seen {
		if slices.ContainsFunc(c.forgetful, func(w *window) bool {
			return c.Ops[w.op].Value == node && w.meets(since, by)
		}) {
			sites--
		}
	}
	return last, sites
}

// onlyServer tells whether the lock has one server, as far as is seen, in a history that does not say how many there
// are: keys were seen on one, and that is the one that failed.
func (c *Case) onlyServer() bool {
	if c.Nodes > 0 || c.Sites > 1 {
		return c.Nodes == 1
	}
	node := int64(-1)
	same := func(n int64) bool {
		if node < 0 {
			node = n
		}
		return node == n
	}
	for _, i := range c.events {
		switch op := &c.Ops[i]; op.Kind {
		case history.Role:
			return false
		case history.Sight, history.Incident:
			if !same(op.Value) {
				return false
			}
		}
	}
	return true
}

// forgotten finds what may have made the servers forget, by a moment, what they did for a key since another. What was
// planned comes first.
func (c *Case) forgotten(key int32, since, by time.Duration) *window {
	return c.first(since, by, &c.planned, c.losses(key))
}

// first finds a window that was at work between two moments. The suite's clock wrote it down, and the moments are a
// worker's: they may be as far from it as clocks differ.
func (c *Case) first(since, by time.Duration, lists ...*reaching) *window {
	slack := c.anySlack()
	for _, list := range lists {
		if w := list.find(minus(since, slack), plus(by, slack)); w != nil {
			return w
		}
	}
	return nil
}

// unfenced finds why a fence need not have kept the holder of an earlier grant out while a later one used the page: the
// servers have begun the fences anew, so the later grant has no greater fence. No clock does that.
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

// accident is an unplanned event that may have made the servers forget, between two moments, what they did for
// a key; nil if a fault can have done so, too.
func (c *Case) accident(key int32, since, by time.Duration) *window {
	return unplanned(c.forgotten(key, since, by))
}

// unplanned is a window that no fault asked for, or nil.
func unplanned(w *window) *window {
	if w != nil && w.fault {
		return nil
	}
	return w
}

// miscounted finds unplanned events that may have made the counter's server forget what was stored on a
// page.
func (c *Case) miscounted(key int32, since, by time.Duration) *window {
	if c.Counter == history.CounterOnTopology {
		return c.accident(key, since, by)
	}
	return c.first(since, by, &c.counter)
}

// stretched finds what may have made a lease longer: a clock of a server that ran behind, or was set.
func (c *Case) stretched(from, to time.Duration) *window {
	return c.atWork(from, to, func(e *history.Effect) bool { return !e.Known() || e.Loses == history.LosesTime })
}

// atWork finds the first fault of the plan that can do it and was at work between two moments.
func (c *Case) atWork(from, to time.Duration, can func(*history.Effect) bool) *window {
	for _, w := range c.servers {
		if w.fault && w.meets(from, to) && can(w.effect) {
			return w
		}
	}
	return nil
}

// reaching are windows by their beginning. Up to each, last is the one that ends last.
type reaching struct {
	all  []*window
	from []time.Duration
	last []*window
}

func newReaching(list []*window) (r reaching) {
	slices.SortStableFunc(list, func(a, b *window) int { return cmp.Compare(a.from, b.from) })
	r.all = list
	for i, w := range list {
		if i > 0 && r.last[i-1].to > w.to {
			w = r.last[i-1]
		}
		r.from, r.last = append(r.from, list[i].from), append(r.last, w)
	}
	return r
}

// find is a window that was at work between two moments, nil without one.
func (r *reaching) find(since, by time.Duration) *window {
	n, found := slices.BinarySearch(r.from, by)
	for found && n < len(r.from) && r.from[n] == by {
		n++
	}
	if n == 0 || r.last[n-1].to < since {
		return nil
	}
	return r.last[n-1]
}

// findLosses sorts out the windows in which servers may forget: of the plan; of the lock's servers; of the counter's,
// which may be any where no record says how many nodes the lock has.
func (c *Case) findLosses() {
	plan, emptied, counter := c.roles, slices.Clone(c.roles), []*window(nil)
	for i := range c.windows {
		w := &c.windows[i]
		kind := c.Ops[w.op].Kind
		if kind != history.Gap {
			c.servers = append(c.servers, w)
		}
		if w.fault && w.effect.BreaksPromises() {
			if plan = append(plan, w); w.effect.Loses != history.LosesTime {
				emptied = append(emptied, w)
			}
		}
		if kind != history.Incident && kind != history.Role {
			continue
		}
		if w.effect.Loses != history.NoLoss { // of sites that leave a majority, too: a grant may stand on a bare one
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

// losses are the windows in which servers may have forgotten, by themselves, what they did for a key. A window without
// an end reaches to the first proof that its server is whole.
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
		if w.to == history.Forever {
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

// elsewhere tells whether a server never had a key: the key was seen after that server had failed, and never on it.
// Each of independent sites has all keys.
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

// sightsOf lists when a key was seen in the servers.
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

// ownSights lists when the key of a hold was seen in the servers: by its token, if no other hold of the page has that.
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

// wholes are the answers that show what the servers had for a key before, by their call: each ends with the first
// answer of those that were called then or later.
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

// noticed is how long before its end a server may have been known to be well for the last time.
const noticed = time.Second

// outage is when the clients of a server that was lost at a moment, or soon after, have noticed it: when the last call
// was over that was made within that time and did not reach it, or had no answer.
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

// countsAgain is when the counter's server has shown that it still has what it had when it was lost.
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
