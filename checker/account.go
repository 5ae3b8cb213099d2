package checker

import (
	"cmp"
	"slices"

	"hammerlock/history"
	"hammerlock/model"
)

// account is the cheapest story of a page, in terms of the case: all that is wrong in it is wrong with the lock.
type account struct {
	slips  []slip
	broke  map[int32]int   // by hold: the first slip that ended it while it was promised
	ofHold map[int32][]int // by hold: the slips that are about it, or against it
}

// slip is a step of a story without which no right lock on whole servers explains the page.
type slip struct {
	model.Step
	hold, against int32   // into Case.holds; -1 = none
	op            int32   // into Ops: the call; -1 = none
	first         int     // the slip that led to it: itself, or an earlier one
	why           *window // made servers forget; nil for a deviation
	told          bool    // two holds that had the lock at once by it have been told of
}

// A long page is told in parts, for a hold takes about 300 bytes meanwhile. What is legal stays so without some of its
// holds, so that no part shows anything that is not so; some of those before and after it are told with it.
const partHolds, besideHolds = 1 << 17, 1 << 10

// tell tells the story of a page; nil where the model has no word for something, or did not find one.
func (c *Case) tell(holds []int32) *account {
	if c.stories == nil {
		c.stories = map[int32]*account{}
	}
	key := c.holds[holds[0]].Key
	t, known := c.stories[key]
	if !known {
		if c.beyondModel(holds) == "" {
			t = c.inParts(holds, partHolds, besideHolds)
		}
		c.stories[key] = t
	}
	return t
}

// inParts tells the stories of so many holds of a page at a time, with so many beside them.
func (c *Case) inParts(holds []int32, many, beside int) *account {
	t := &account{broke: map[int32]int{}, ofHold: map[int32][]int{}}
	for from := 0; from < len(holds); from += many {
		to := min(from+many, len(holds))
		p, s := c.story(holds[max(from-beside, 0):min(to+beside, len(holds))])
		if s.Status != model.Explained {
			return nil
		}
		c.slips(t, p, &s, holds[from], holds[to-1])
	}
	return t
}

// slips takes in what is wrong in a story of some holds of a page. A holder that lost the lock by a slip goes on, since
// it does not know: all that comes of it belongs to that slip.
func (c *Case) slips(t *account, p *pages, s *model.Story, first, last int32) {
	led, held := map[int32]int{}, []int32(nil)
	for i := range s.Steps {
		x := &s.Steps[i]
		lost := x.Broke(held)
		if held = x.After(held); x.Deviation == nil && len(lost) == 0 && x.Event != model.Restored {
			continue
		}
		n := len(t.slips)
		if h := p.hold(x.Hold); h < first || h > last {
			continue
		}
		k := slip{Step: *x, hold: p.hold(x.Hold), against: p.hold(x.Against), op: -1, first: n}
		if x.Event == model.Effect {
			k.op = c.at(x.Call)
		}
		if x.Window >= 0 && x.Deviation == nil {
			k.why = p.why[x.Window]
		} else if first, ok := led[k.hold]; ok {
			k.first = first
		}
		for _, h := range lost {
			if h = p.hold(h); h < 0 {
				continue
			}
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

// hold is the case's number of a hold of the page.
func (p *pages) hold(n int32) int32 {
	if n < 0 {
		return -1
	}
	return p.holds[n]
}

// deviates tells whether a slip is a deviation of that name.
func (k *slip) deviates(cause string) bool { return k.Deviation != nil && k.Deviation.Name == cause }

// of is the slip that explains why two holds had the lock at once: it ended one of them while that was promised, or
// else it is an answer or an act of one of them. Deviations of the lock come before losses of the servers: they are
// wrong in any case. -1 without one.
func (t *account) of(p pair) int {
	best, class := -1, 4
	look := func(n int, broke bool) {
		at := 3
		switch deviates := t.slips[n].Deviation != nil; {
		case broke && deviates:
			at = 0
		case deviates:
			at = 1
		case broke:
			at = 2
		}
		if at < class || at == class && n < best {
			best, class = n, at
		}
	}
	for _, h := range [2]int32{p.first, p.second} {
		for _, n := range t.ofHold[h] {
			look(n, false)
		}
		if n, ok := t.broke[h]; ok {
			look(n, true)
		}
	}
	return best
}

// names makes a finding about two holds of the slip that explains them.
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
	case f.cause == history.FalseExtension && c.gaveBack(first): // nothing is said against the one before that
		f.cause = history.DoubleGrant
	case first.Kind == model.Extend && first.against >= 0 && c.share(&c.holds[first.hold], &c.holds[first.against]):
		f.cause = history.DoubleGrant // no server can tell which of two holds with one token is extended
	}
	if f.cause == history.DoubleGrant {
		f.op = -1
	}
	return f, true
}

// gaveBack tells whether an extension without an answer came after one that was not kept: a library that could not
// extend may give back what it has.
func (c *Case) gaveBack(k *slip) bool {
	return c.unheard(&c.holds[k.hold], c.Ops[k.op].Return, history.Forever) >= 0
}

// doubles finds the double grants that the story shows and no two holds alone.
func (x *examiner) doubles() {
	if x.told == nil {
		return
	}
	for n := range x.told.slips {
		k := &x.told.slips[n]
		if k.deviates(history.DoubleGrant) && k.against >= 0 && !x.blamed[k.hold] && !x.blamed[k.against] {
			x.blamed[k.hold] = true
			x.add(finding{cause: history.DoubleGrant, pair: pair{k.against, k.hold}, op: -1, follows: k.first != n})
		}
	}
}

// answers tells whether a story says all that there is to say of what releases were answered. Where an accident is in
// it and no wrong answer, it is asked which answers that accident reaches.
func (t *account) answers() bool {
	if t == nil {
		return false
	}
	accident, wrong := false, false
	for i := range t.slips {
		k := &t.slips[i]
		accident = accident || k.why != nil && !k.why.fault
		wrong = wrong || k.Deviation != nil && k.Deviation.Claim == "owned"
	}
	return wrong || !accident
}

// slipped yields the slips of all pages, by time.
func (c *Case) slipped(yield func(*slip) bool) {
	for _, holds := range c.byKey {
		t := c.tell(holds)
		if t == nil {
			continue
		}
		list := slices.Clone(t.slips)
		slices.SortStableFunc(list, func(a, b slip) int { return cmp.Compare(a.At, b.At) })
		for i := range list {
			if !yield(&list[i]) {
				return
			}
		}
	}
}
