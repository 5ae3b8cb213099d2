package certify

import "fmt"

// page is the state of a lock: its holders.
type page struct {
	at    ns // time of the last event; used by the story only
	used  int64
	holds map[*op]*held
}

// held is the state of a hold. The field begun says when its lease began: in a story it is a time, in a core it is the
// number of a moment.
type held struct {
	present, over bool
	entries       int64 // number of acquires by its owner, minus its releases
	begun         ns
	life          lease
	free          ns   // in a core: from this time on, calls outside of the core may have ended the hold
	open          bool // in a core: calls outside of the core may have extended the lease
}

// lease has the bounds for the end of a lease. The earliest end is the duration `least` after the start, or the time
// `until` if that is earlier. The latest end is the duration `most` after the start.
type lease struct{ least, until, most ns }

func (h *History) lease(o *op) lease {
	l := lease{h.least(o.TTL), forever, h.most(o.TTL)}
	switch told := o.Until != 0 && o.Until != forever; {
	case h.Claims.Expires && told && (h.Claims.Begins || o.TTL == 0):
		l.until = o.Until - h.doubt(o)
	case h.Claims.Expires && h.Claims.Begins && o.Kind == "acquire":
		l.until = o.Call - h.doubt(o)
	case h.Sites > 1: // the first site may have granted it at the call
		l.until = plus(o.Call-h.doubt(o), l.least)
	}
	return l
}

// step applies a call to the state of its page. The result legal says whether the call is legal at all. If so, it must
// happen between the times `from` and `to`, and not later than the duration `most` after its hold's lease began.
func (h *History) step(p *page, o *op) (from, to, most ns, legal bool) {
	a := h.acquire(o)
	x, owned, again := p.holds[a], h.Claims.Owned, o.Kind == "acquire" && o != a
	from, to, most, legal = o.Call-h.doubt(o), forever, forever, x.present || !owned && !again
	if o.Outcome == "ok" || o.Outcome == "failed" {
		to = plus(o.Return, h.doubt(o))
	}
	switch {
	case o.Outcome == "failed":
		if h.Sites > 1 { // some of its sites may have had it until then
			x.free = min(x.free, o.Call)
		}
		return from, to, most, !o.denies() || !x.present || !owned || h.Sites > 1
	case x.present && !x.open && (owned || o.Kind != "release"):
		most = x.life.most
	}
	switch {
	case o == a:
		if old := p.holds[h.ops[o.Seen]]; old != nil && old.present { // an upgrade
			old.present, p.used = false, p.used-h.weight(h.ops[o.Seen])
		}
		p.used += h.weight(a)
		legal, x.present, x.over, x.entries = !x.over && p.used <= h.room(), true, true, 1
	case again:
		x.entries++
	case o.Kind == "release" && x.present:
		if x.entries--; a.Value != 0 { // the lock tells the number of entries
			x.entries = o.Value
		}
		if x.entries < 1 {
			x.present, p.used = false, p.used-h.weight(a)
		}
	}
	if o.Kind != "release" {
		x.life = h.lease(o)
	}
	return from, to, most, legal
}

// looks reports whether a call may have found its hold alive earlier than it set the new end of the lease. A server
// may be stopped between the two.
func (o *op) looks() bool { return o.Kind == "extend" && o.Outcome == "ok" }

// mostOrders limits the number of partial orders of calls that are tried. A core (a set of calls) that needs more is
// rejected as too large.
const mostOrders = 1_000_000

// core tries all orders of a few calls of one page. Every other call may have happened at any time after it was
// called, or never. This assumption only allows more orders.
type core struct {
	*History
	page  page
	edges []edge
	tried int
}

// edge is a bound: the moment with the number `to` is at most the duration `d` after the moment with the number `from`.
// Moment 0 is the start of the run.
type edge struct {
	from, to int
	d        ns
}

// contradicts proves that calls have no legal order by trying all orders.
func contradicts(h *History, calls []*op) bool {
	c, in := core{History: h, page: page{holds: map[*op]*held{}}}, map[*op]bool{}
	for _, o := range calls {
		in[o] = true
		a := h.acquire(o)
		if a == nil || !in[a] || a.Key != calls[0].Key || a != o && o.Kind == "acquire" || o.Seen != "" {
			return false
		} else if a == o {
			c.page.holds[a] = &held{free: h.taken(a)}
		}
	}
	for a, x := range c.page.holds {
		last := a.Call // latest call in the core that begins a lease
		for o := a.rest; o != nil; o = o.rest {
			if in[o] && o.Kind == "extend" && o.Outcome == "ok" {
				last = max(last, o.Call)
			}
		}
		for o := a.rest; o != nil; o = o.rest {
			switch {
			case in[o] || o.Outcome == "failed" && (h.Sites < 2 || o.Reason != "lost"):
			case o.Kind == "acquire":
				return false
			case o.Kind == "release":
				x.free = min(x.free, o.Call)
			case o.Kind == "extend" && (o.Outcome != "ok" || o.Return >= last):
				x.open, x.free = true, min(x.free, plus(max(o.Call, last), h.least(o.TTL)))
			}
		}
	}
	return len(calls) > 1 && !c.order(calls, 1)
}

// order reports whether the remaining calls (rest) have a legal order after the first n-1 moments. After too many
// attempts it also returns true.
func (c *core) order(rest []*op, n int) bool {
	if c.tried++; len(rest) == 0 || c.tried > mostOrders {
		return true
	}
	if o := rest[0]; o.Outcome != "ok" && o.Outcome != "failed" && c.order(rest[1:], n) {
		return true // it had no effect
	}
	for i, o := range rest {
		x := c.page.holds[c.acquire(o)]
		was, used := *x, c.page.used
		from, to, most, legal := c.step(&c.page, o)
		if o.Kind != "release" && o.Outcome != "failed" {
			x.begun = ns(n)
		}
		alive := edge{int(was.begun), n, most}
		if o.looks() && most != forever {
			alive = edge{int(was.begun), 0, most - from}
		}
		if legal && c.then(append(append([]*op{}, rest[:i]...), rest[i+1:]...), n, edge{n, 0, -from}, edge{0, n, to},
			alive) {
			return true
		}
		*x, c.page.used = was, used
	}
	for a, x := range c.page.holds {
		if x.present && c.ends(a, x, n, rest) {
			return true
		}
	}
	return false
}

// ends lets a hold end in moment n, and reports whether the remaining calls then have a legal order. A hold ends when
// its lease is over, because of a call outside of the core, or because servers forgot it in an unplanned incident.
func (c *core) ends(a *op, x *held, n int, rest []*op) bool {
	x.present, c.page.used = false, c.page.used-c.weight(a)
	defer func() { x.present, c.page.used = true, c.page.used+c.weight(a) }()
	if x.life.least != forever && c.then(rest, n, edge{n, int(x.begun), -x.life.least}) ||
		x.life.until != forever && c.then(rest, n, edge{n, 0, -x.life.until}) ||
		x.free != forever && c.then(rest, n, edge{n, 0, c.doubt(a) - x.free}) {
		return true
	}
	for _, w := range c.windows {
		slack := c.Bounds.Slack
		if w.forgets && !w.planned && c.then(rest, n, edge{n, 0, slack - w.from}, edge{0, n, plus(w.to, slack)}) {
			return true
		}
	}
	return false
}

// then adds the bounds of moment n. It returns true if times exist for all moments that keep all bounds, and
// the remaining calls have a legal order after moment n. Such times exist if no cycle of edges has a negative
// length (Bellman-Ford).
func (c *core) then(rest []*op, n int, bounds ...edge) bool {
	before, at := len(c.edges), make([]ns, n+1)
	defer func() { c.edges = c.edges[:before] }()
	for _, e := range append(bounds, edge{n, n - 1, 0}) {
		if e.d != forever {
			c.edges = append(c.edges, e)
		}
	}
	for round := 0; round <= n; round++ {
		changed := false
		for _, e := range c.edges {
			if t := at[e.from] + e.d; t < at[e.to] {
				at[e.to], changed = t, true
			}
		}
		if !changed {
			return c.order(rest, n+1)
		}
	}
	return false
}

// happens checks a fact of the story: a call takes effect, a lease ends, or servers forget a hold.
func (h *History) happens(f *fact) error {
	o := h.ops[f.Does+f.Ends+f.Forgets]
	if o == nil || h.acquire(o) == nil || f.Does == "" && h.acquire(o) != o {
		return fmt.Errorf("%q is no call of a hold", f.Does+f.Ends+f.Forgets)
	}
	a, p := h.acquire(o), h.pages[h.acquire(o).Key]
	if p == nil {
		p = &page{holds: map[*op]*held{}, at: -forever}
		h.pages[a.Key] = p
	}
	x := p.holds[a]
	if x == nil {
		x = &held{free: forever}
		p.holds[a] = x
	}
	begun, before := x.begun, p.at
	p.at = f.At
	switch {
	case f.At < before:
		return fmt.Errorf("page %d had gone on to %d", o.Key, before)
	case f.Does != "":
		from, to, most, legal := h.step(p, o)
		looked := f.At
		if o.looks() {
			looked = from
		}
		if !legal || o.done || f.At < from || f.At > to || most != forever && looked > plus(begun, most) {
			return fmt.Errorf("%s %s is not legal then", o.Kind, o.ID)
		}
		switch o.done = true; {
		case o.Outcome == "failed":
		case o.Kind != "release":
			x.begun = f.At
		case x.present: // an inner release may have renewed the lease, or not
			if x.begun = f.At; x.life.least != forever {
				x.life.least, x.life.most = x.life.least-(f.At-begun), max(x.life.most-(f.At-begun), h.most(a.TTL))
			}
		}
		return nil
	case !x.present:
		return fmt.Errorf("%s does not hold the page", a.ID)
	case f.Ends != "":
		if f.At < min(plus(begun, x.life.least), x.life.until, x.free-h.doubt(a), h.death(a)) ||
			f.At > plus(begun, x.life.most) {
			return fmt.Errorf("the lease of %s does not end then", a.ID)
		}
	case !h.reaches(f.By, f.At, f.At):
		return fmt.Errorf("%q makes no server forget then", f.By)
	}
	x.present, p.used = false, p.used-h.weight(a)
	return nil
}
