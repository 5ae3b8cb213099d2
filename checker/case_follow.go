package checker

import (
	"cmp"
	"slices"
	"time"

	"hammerlock/history"
)

// follow assigns every operation to its hold. An extension by a watchdog has no hold ID, so its token is used.
func (c *Case) follow() {
	var tokens []token
	crashes := map[int32][]time.Duration{}
	var extends, reenters []link
	for i := range c.Ops {
		op := &c.Ops[i]
		switch op.Kind {
		case history.Crash:
			crashes[op.Worker] = append(crashes[op.Worker], op.Call)
			continue
		case history.Fault, history.Heal:
			if e := &c.Faults[op.Value].Effect; !e.Known() || !e.Hit(history.Nobody) {
				c.events = append(c.events, int32(i))
			}
			continue
		case history.Found, history.Sight, history.Gap, history.Role, history.Incident:
			c.events = append(c.events, int32(i))
			continue
		case history.Skip, history.End, history.Final:
			continue
		}
		if own := c.renewed(&tokens, op); len(own) > 0 {
			for _, t := range own {
				extends = history.Append(&c.scratch, extends, link{t.hold, int32(i)})
			}
			continue
		}
		at := c.holdAt(op.Hold)
		if at < 0 {
			c.without(op, int32(i))
			continue
		}
		switch h := &c.holds[at]; {
		case op.Kind == history.Extend:
			extends = history.Append(&c.scratch, extends, link{at, int32(i)})
		case op.Kind == history.Acquire && int32(i) != h.acquire,
			// an inner release: the owner still holds the lock
			op.Kind == history.Release && op.Value > 0 && (op.Outcome == history.OK || op.Reason == history.Refused):
			reenters = history.Append(&c.scratch, reenters, link{at, int32(i)})
			if op.Kind == history.Acquire && op.Outcome != history.Failed && op.Until != 0 {
				// settle removes this extension again if the re-entry did not make the lease longer
				extends = history.Append(&c.scratch, extends, link{at, int32(i)})
			}
		default:
			c.assign(h, int32(i))
		}
	}
	c.bind(extends, func(h *hold) *part { return &h.extends })
	c.bind(reenters, func(h *hold) *part { return &h.reenters })
	for _, list := range crashes {
		slices.Sort(list)
	}
	c.beginAnew()
	c.outermost()
	for _, n := range c.byCall {
		h := &c.holds[n]
		c.settle(h, crashes[h.Worker])
	}
}

// without keeps a successful call that has no hold. Its worker held nothing, or its Acquire was reported as failed.
func (c *Case) without(op *history.Op, i int32) {
	switch {
	case op.Outcome != history.OK:
	case op.Kind == history.Release && op.Hold == 0:
		c.unheld = append(c.unheld, i)
	case op.Kind == history.Release, op.Kind == history.Extend:
		c.events = append(c.events, i)
	}
}

// upgrade ends each shared hold that an exclusive hold has replaced. Servers kept the shared hold until the call of the
// upgrade, and its holder relied on it until the answer. If the upgrade had no answer, it is unknown whether a later
// release of the shared hold found the hold.
func (c *Case) upgrade() {
	for _, i := range c.upgrades {
		op := &c.Ops[i]
		h := c.hold(op.Seen)
		if h == nil {
			continue
		}
		if h.ending = maybe; op.Outcome == history.OK {
			h.ending, h.upgraded = returned, true
		} else if h.Release >= 0 {
			c.repeats = append(c.repeats, h.Release)
		}
		h.releaseCall, h.releaseReturn, h.Release = op.Call, op.Return, -1
	}
	c.repeats = slices.DeleteFunc(c.repeats, func(i int32) bool { return c.hold(c.Ops[i].Hold).upgraded })
}

// outermost finds, for each hold that was re-entered, its outermost release, which frees the lock. If the lock reports
// counts, only releases without an answer are in doubt: see counted. If it does not, the outermost release follows as
// many inner releases as there were re-entries. If some of these calls had no answer, the first release that can be the
// outermost is taken, and the hold is doubtful.
func (c *Case) outermost() {
	if !c.Claims.Reentrant {
		return
	}
	again := map[history.ID][]int32{}
	for _, i := range c.repeats {
		again[c.Ops[i].Hold] = append(again[c.Ops[i].Hold], i)
	}
	inner := map[int32]bool{}
	for i := range c.holds {
		h := &c.holds[i]
		if len(c.reenters(h)) == 0 || h.Release < 0 {
			continue
		}
		if c.acquire(h).Value != 0 {
			c.counted(h, again[c.acquire(h).ID], inner)
			continue
		}
		entries, doubtful := c.entries(h)
		// releases without an effect do not count
		list := slices.DeleteFunc(append(again[c.acquire(h).ID], h.Release), func(k int32) bool {
			return c.Ops[k].Outcome == history.Failed && c.Ops[k].Reason != history.Lost
		})
		slices.SortFunc(list, c.byCalls)
		for _, k := range list[:max(len(list)-1, 0)] {
			if c.Ops[k].Outcome == history.Unknown {
				doubtful++ // a release without an answer may have had no effect
			}
		}
		entries = min(entries, len(list))
		if lost := slices.IndexFunc(list, func(k int32) bool { return c.Ops[k].Outcome == history.Failed }); lost >= 0 {
			entries = min(entries, lost) // with this answer the whole hold is lost
		}
		inside := slices.Concat(c.reenters(h), list[:entries])
		slices.SortFunc(inside, c.byCalls)
		h.reenters = c.keep(inside)
		for _, k := range list[:entries] {
			inner[k] = true
		}
		if len(list) == 0 {
			continue
		}
		h.doubtful = doubtful > 0
		h.Release, h.releaseCall, h.releaseReturn, h.ending = -1, history.Forever, history.Forever, endless
		if entries < len(list) {
			h.releases(list[entries], &c.Ops[list[entries]])
			for _, k := range list[entries:min(entries+doubtful+1, len(list))] {
				inner[k] = true // it does not repeat the outermost release
			}
		}
	}
	c.repeats = slices.DeleteFunc(c.repeats, func(i int32) bool { return inner[i] })
}

// bind stores links in Case.links, sorted by hold and call, and gives each hold its part.
func (c *Case) bind(links []link, of func(*hold) *part) {
	slices.SortFunc(links, func(a, b link) int {
		if a.hold != b.hold {
			return cmp.Compare(a.hold, b.hold)
		}
		if x, y := c.Ops[a.op].Call, c.Ops[b.op].Call; x != y {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(a.op, b.op)
	})
	c.links = history.Reserve(&c.space, c.links, len(links))
	for i, l := range links {
		p := of(&c.holds[l.hold])
		if i == 0 || links[i-1].hold != l.hold {
			p.from = int32(len(c.links))
		}
		c.links = append(c.links, l.op)
		p.to = int32(len(c.links))
	}
}

type token struct {
	token uint64
	hold  int32
}

func (c *Case) tokens() []token {
	list := history.Make[token](&c.scratch, len(c.holds))[:0]
	for i := range c.holds {
		if t := c.acquire(&c.holds[i]).Token; t != 0 {
			list = append(list, token{t, int32(i)})
		}
	}
	slices.SortFunc(list, func(a, b token) int { return cmp.Compare(a.token, b.token) })
	return list
}

// renewed returns the holds that an extension by a watchdog renews. It finds them by the token; there are several if
// the visit is to several pages.
func (c *Case) renewed(all *[]token, op *history.Op) []token {
	t := op.Token
	if op.Kind != history.Extend || op.Hold != 0 || t == 0 {
		return nil
	}
	if *all == nil {
		*all = c.tokens()
	}
	tokens := *all
	from, _ := slices.BinarySearchFunc(tokens, t, func(x token, t uint64) int { return cmp.Compare(x.token, t) })
	to := from
	for to < len(tokens) && tokens[to].token == t {
		to++
	}
	return tokens[from:to]
}

func (c *Case) assign(h *hold, i int32) {
	op := &c.Ops[i]
	switch op.Kind {
	case history.Release:
		if h.Release < 0 {
			h.releases(i, op)
			return
		}
		if op.Call < h.releaseCall {
			first := h.Release
			h.releases(i, op)
			i = first
		}
		c.repeats = append(c.repeats, i)
	case history.Load:
		if h.Permits > 0 && h.Uses[0] >= 0 { // a reader loads again before it releases
			h.Uses[1], h.stored = i, op.Call
			return
		}
		if h.load = i; h.Uses[1] < 0 {
			h.Uses[0] = i
		}
	case history.Store:
		if h.stored == history.Forever || op.Outcome != history.Failed { // a leader stores many times
			h.Uses = [2]int32{h.load, i}
		}
		if op.Outcome != history.Failed {
			h.stored = op.Call
		}
	case history.Lose:
		h.Lost = min(h.Lost, op.Return)
	}
}

// settle computes three things of a hold, after all its operations are known: its end, its holder's last deadline, and
// its holder's crash.
func (c *Case) settle(h *hold, crashes []time.Duration) {
	if h.Release >= 0 {
		h.doubtful = h.doubtful || len(c.reenters(h)) > 0 && h.answer == history.Unknown
		if h.answer == history.OK && c.Claims.Owned && !h.doubtful && !c.reentered(h, h.releaseCall) {
			h.ending = returned
		}
	}
	if h.anew { // the sweeps judge the first lease alone, the story judges both
		h.ending, h.stored = endless, history.Forever
	}
	extends := slices.DeleteFunc(c.extends(h), func(i int32) bool {
		return c.Ops[i].Kind == history.Acquire && c.Ops[i].Until <= h.Until
	})
	h.extends.to = h.extends.from + int32(len(extends))
	for _, i := range extends {
		op := &c.Ops[i]
		if op.Outcome == history.OK && h.Outcome == history.Unknown {
			h.Outcome, h.Return, h.Until = history.OK, op.Return, history.Forever // the lock was certainly held by then
		}
		if op.Until != 0 && op.Outcome != history.Failed && (op.Call <= h.releaseReturn || h.doubtful) {
			h.Until = op.Until // the holder relies on this deadline even if the extension had no answer
		}
		if op.Outcome == history.Failed && op.Reason == history.Lost {
			h.Lost = min(h.Lost, op.Return)
		}
	}
	if n, _ := slices.BinarySearch(crashes, h.Call); n < len(crashes) {
		h.Crashed = crashes[n]
	}
	if end := min(h.Crashed, h.Lost); c.Session && end != history.Forever && h.ending == endless {
		h.ending, h.releaseCall = maybe, end // the hold ended with its connection
	}
	if n := h.Uses[1]; n >= 0 && h.Crashed != history.Forever && c.Ops[n].Outcome == history.Unknown &&
		c.Ops[n].Return >= h.Crashed {
		h.stored = history.Forever // the worker died in the call, and may not have sent anything
	}
}

// reentered reports whether a re-entry was called before the moment `by` and had no answer. It may have granted the
// lock again after the hold had ended.
func (c *Case) reentered(h *hold, by time.Duration) bool {
	return slices.ContainsFunc(c.reenters(h), func(i int32) bool {
		op := &c.Ops[i]
		return op.Kind == history.Acquire && op.Call < by && op.Outcome == history.Unknown
	})
}

// cutOff handles a history whose end is missing. After the last record of a lane (the log of one worker), the worker
// may have called a release that took effect. Only the last visit of a lane can be open.
func (c *Case) cutOff() {
	if c.Partial == "" {
		return
	}
	c.findLogs()
	last := map[int]time.Duration{} // lane -> last return
	open := map[int]int32{}         // lane -> hold of the open visit, plus one
	for i := range c.Ops {
		op := &c.Ops[i]
		lane := op.ID.Lane()
		if op.Return != history.Forever && op.Kind != history.Crash {
			last[lane] = op.Return
		}
		switch {
		case op.Kind == history.Acquire && op.Outermost():
			open[lane] = c.holdAt(op.ID) + 1
		case op.Kind == history.End:
			delete(open, lane)
		}
	}
	for lane, n := range open {
		if n == 0 {
			continue
		}
		h := &c.holds[n-1]
		died := c.Session && h.Crashed != history.Forever && h.Release < 0 // its release before that may be missing
		if h.ending == endless || died && h.ending == maybe {
			h.ending, h.releaseCall, h.cut = maybe, last[lane], true
		}
	}
}

// contend marks the holds during which another worker tried to get the lock. It compares each try with the last grant
// that had returned before.
func (c *Case) contend() {
	last := map[int32]int32{} // key -> last hold whose grant returned, plus one
	for i := range c.Ops {
		op := &c.Ops[i]
		if op.Kind != history.Acquire || op.Worker < 0 || !op.Outermost() {
			continue
		}
		if n := last[op.Key] - 1; n >= 0 {
			c.tried(&c.holds[n], op)
		}
		if op.Outcome == history.OK {
			last[op.Key] = c.holdAt(op.ID) + 1
		}
	}
}

// tried marks a hold as contended if another worker tried to get the lock during it. It marks the hold as exposed if a
// grant to this try would have proved that the lock is broken. Two holds certainly overlap if each begins before the
// other ends, by more than the clocks may differ. A refused try could have been granted at its return, a successful
// one at its call.
func (c *Case) tried(h *hold, op *history.Op) {
	if h.Worker == op.Worker || op.Call >= h.trusted() || !c.clash(h.Permits, op.Permits) && op.Reason != history.Busy {
		return
	}
	h.Contended = true
	slack := c.slack(h.Process, op.Process)
	at := op.Call
	if op.Outcome != history.OK {
		at = op.Return
	}
	h.Exposed = h.Exposed || slack == 0 || h.Return+slack < at && plus(at, slack) < h.trusted()
}
