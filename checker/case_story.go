package checker

import (
	"cmp"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/model"
)

// A page with many holds is explained in parts of partHolds holds, because the search takes about 300 bytes for each
// hold. Parts cause no false violation: if a history is legal, it is legal without some of its holds. Each part is
// explained together with besideHolds holds before it and after it.
const partHolds, besideHolds = 1 << 17, 1 << 10

// tell returns the account of the page that has these holds. Each account is computed once.
func (c *Case) tell(holds []int32) *account {
	if c.stories == nil {
		c.stories = map[int32]*account{}
	}
	key := c.holds[holds[0]].Key
	t, known := c.stories[key]
	if !known {
		t = c.account(holds)
		c.stories[key] = t
	}
	return t
}

// account computes the result of the method tell. All exclusive holds have one story together. Each shared hold has a
// story of its own, with the holds that exclude it: the answers to a shared hold depend only on its own lease. Whether
// shared holds fit together is another check: see Promise in METHOD.md.
func (c *Case) account(holds []int32) *account {
	t := newAccount()
	alone, shared := c.split(holds)
	t.shared = len(shared) > 0
	if c.beyondModel() != "" || !c.inParts(t, alone, partHolds, besideHolds) {
		return noStory(t.shared)
	}
	r := ruler{c: c}
	for _, n := range holds {
		if !t.shared || len(c.sentAgain[n]) == 0 && r.plain(&c.holds[n]) {
			continue
		}
		p, story := c.story(c.excluders(n, alone, shared))
		if story.Status != model.Explained {
			return noStory(t.shared)
		}
		c.slips(t, p, &story, n, n)
	}
	t.loosen(&r, shared)
	return t
}

// split separates exclusive holds from those that share the lock.
func (c *Case) split(holds []int32) (alone, shared []int32) {
	shares := func(n int32) bool { return c.holds[n].Permits > 0 }
	if !slices.ContainsFunc(holds, shares) {
		return holds, nil
	}
	for _, n := range holds {
		if shares(n) {
			shared = append(shared, n)
		} else {
			alone = append(alone, n)
		}
	}
	return alone, shared
}

// excluders lists hold n, and the holds that exclude it and were requested before its last answer. For a shared hold
// these are all exclusive holds. For an exclusive hold it is only the first shared hold that was granted. A shared
// hold and the exclusive hold that it was upgraded to do not exclude each other.
func (c *Case) excluders(n int32, alone, shared []int32) []int32 {
	h, list := &c.holds[n], []int32{n}
	last := h.Return
	for _, i := range slices.Concat(c.extends(h), []int32{h.Release}, c.sentAgain[n]) {
		if i >= 0 && c.Ops[i].Outcome != history.Unknown {
			last = max(last, c.Ops[i].Return)
		}
	}
	others := alone
	if h.Permits == 0 {
		others = shared
	}
	at, _ := slices.BinarySearchFunc(others, h.Call, func(k int32, t time.Duration) int {
		return cmp.Compare(c.holds[k].Call, t)
	})
	for ; at < len(others) && c.holds[others[at]].Call <= last && (h.Permits > 0 || len(list) < 2); at++ {
		o := &c.holds[others[at]]
		upgrade := c.acquire(o).Seen == c.acquire(h).ID || c.acquire(h).Seen == c.acquire(o).ID
		if !upgrade && (h.Permits > 0 || o.Outcome == history.OK) {
			list = append(list, others[at])
		}
	}
	slices.Sort(list)
	return list
}

// plain reports whether a hold needs no story: each of its answers came before its lease can have ended.
func (r *ruler) plain(h *hold) bool {
	if h.Outcome != history.OK || len(r.c.reenters(h)) > 0 || len(r.c.ownSights(h)) > 0 {
		return false
	}
	op := r.c.acquire(h)
	end, last := r.promised(op), op.Return
	for _, n := range append(r.c.extends(h), h.Release) {
		if n < 0 {
			continue
		}
		if op = &r.c.Ops[n]; op.Outcome != history.OK || op.Return > end || op.Call < last {
			return false
		}
		end, last = r.promised(op), op.Return
	}
	return true
}

// inParts explains the holds in parts of the given size, each with some holds before and after it. It returns false if
// a part has no story.
func (c *Case) inParts(t *account, holds []int32, many, beside int) bool {
	for from := 0; from < len(holds); from += many {
		to := min(from+many, len(holds))
		p, s := c.story(holds[max(from-beside, 0):min(to+beside, len(holds))])
		if s.Status != model.Explained {
			return false
		}
		c.slips(t, p, &s, holds[from], holds[to-1])
	}
	return true
}

// among explains a chain of holds, each of which excludes the hold before it, as if all of them excluded each other.
func (c *Case) among(holds []int32) *account {
	t := newAccount()
	t.shared = true
	holds = slices.Clone(holds)
	slices.Sort(holds)
	if holds = slices.Compact(holds); c.beyondModel() != "" || !c.inParts(t, holds, len(holds), 0) {
		return noStory(true)
	}
	return t
}

// loosen fills t.loose, if holds share the lock, with releases of holds that had already ended: such a release may
// have freed another hold. If the lock does not check the owner, the answer "ok" proves little. Then t.loose also has
// successful releases of holds that may have ended, or may never have been granted.
func (t *account) loosen(r *ruler, shared []int32) {
	c := r.c
	for i := range t.slips {
		if k := &t.slips[i]; t.shared && (k.deviates(history.FalseRelease) || k.deviates(history.DoubleRelease)) {
			t.loose.ops = append(t.loose.ops, k.op)
		}
	}
	for _, n := range shared {
		h := &c.holds[n]
		for i, op := range append([]int32{h.Release}, c.sentAgain[n]...) {
			if !c.Claims.Owned && op >= 0 && c.Ops[op].Outcome == history.OK &&
				(i > 0 || h.Outcome != history.OK || r.assured(h) < c.Ops[op].Return) {
				t.loose.ops = append(t.loose.ops, op)
			}
		}
	}
	slices.SortFunc(t.loose.ops, c.byCalls)
	until := -history.Forever
	for _, n := range t.loose.ops {
		until = max(until, c.Ops[n].Return)
		t.loose.until = append(t.loose.until, until)
	}
}

// slips reads the story s and adds its slips to the account, but only those of the holds from first to last. A holder
// that lost the lock by a slip does not know that. So its later slips count as consequences of the same slip.
func (c *Case) slips(t *account, p *pages, s *model.Story, first, last int32) {
	led, held := map[int32]int{}, []int32(nil)
	for i := range s.Steps {
		x := &s.Steps[i]
		lost := x.Broke(held)
		if held = x.After(held); x.Deviation == nil && len(lost) == 0 && x.Event != model.Restored {
			continue
		}
		n := len(t.slips)
		h, against := p.hold(x.Hold), p.hold(x.Against)
		subject := h
		if h < 0 && x.Deviation != nil { // a release without a hold belongs to the hold that it ended
			subject = max(against, first)
		}
		if own := first == last && against == first; !own && (subject < first || subject > last) || t.knows(h, x) {
			continue
		}
		k := slip{Step: *x, hold: h, against: against, op: -1, first: n}
		if x.Event == model.Effect {
			k.op = c.at(x.Call)
		}
		if x.Window >= 0 && x.Deviation == nil {
			k.why = p.why[x.Window]
		} else if first, ok := led[k.hold]; ok {
			k.first = first
		}
		for _, h := range lost {
			h = p.hold(h)
			if _, known := t.broke[h]; !known {
				t.broke[h] = n
			}
			if _, known := led[h]; !known && k.why == nil {
				led[h] = k.first
			}
		}
		for _, h := range []int32{k.hold, k.against} {
			t.ofHold[h] = append(t.ofHold[h], n)
		}
		t.slips = append(t.slips, k)
	}
}

// hold converts the index of a hold in the page to its index in the case. It returns -1 for a release by a worker that
// held nothing.
func (p *pages) hold(n int32) int32 {
	if n < 0 || int(n) >= len(p.holds) {
		return -1
	}
	return p.holds[n]
}

// names returns a finding for the overlap of two holds. Its cause is that of the slip, the wrong step in the page's
// story, which explains the overlap. The result ok is false if no slip does.
func (c *Case) names(t *account, p pair) (f finding, ok bool) {
	n := t.of(p)
	if n < 0 {
		return finding{}, false
	}
	k := &t.slips[n]
	if k.Deviation == nil {
		return finding{cause: history.ServiceLoss, pair: p, op: k.why.op, why: k.why}, true
	}
	first := &t.slips[k.first]
	f = finding{cause: first.Deviation.Name, pair: p, op: first.op, follows: k.first != n, again: k.told}
	k.told = true
	switch {
	case t.shared && (f.cause == history.FalseRelease || f.cause == history.DoubleRelease):
		f.cause = history.ForeignRelease // the releaser's own hold was over, so the release freed another hold
	case f.cause == history.FalseExtension && c.gaveBack(first): // the earlier hold is not to blame
		f.cause = history.DoubleGrant
	case first.Kind == model.Extend && first.against >= 0 && c.share(&c.holds[first.hold], &c.holds[first.against]):
		f.cause = history.DoubleGrant // a server cannot tell two holds with the same token apart
	}
	if f.cause == history.DoubleGrant {
		f.op = -1
	}
	return f, true
}

// slipped iterates over the slips of all pages, page by page, and within a page in the order of time.
func (c *Case) slipped(yield func(*slip) bool) {
	for _, holds := range c.byKey {
		list := slices.Clone(c.tell(holds).slips)
		slices.SortStableFunc(list, func(a, b slip) int { return cmp.Compare(a.At, b.At) })
		for i := range list {
			if !yield(&list[i]) {
				return
			}
		}
	}
}

// gaveBack reports whether the lock may have released the hold of a slip without a call: a later extension had no
// answer. Some libraries release a lock that they cannot extend.
func (c *Case) gaveBack(k *slip) bool {
	return c.unheard(&c.holds[k.hold], c.Ops[k.op].Return, history.Forever) >= 0
}

// freed searches t.loose for releases that were called before the moment `by` and returned after the moment `since`.
// It returns the index in Ops of the one that was called last; -1 if none exists.
func (t *account) freed(c *Case, since, by time.Duration) int32 {
	f := &t.loose
	at, _ := slices.BinarySearchFunc(f.ops, by, func(n int32, t time.Duration) int {
		return cmp.Compare(c.Ops[n].Call, t)
	})
	for at--; at >= 0 && f.until[at] > since; at-- {
		if c.Ops[f.ops[at]].Return > since {
			return f.ops[at]
		}
	}
	return -1
}
