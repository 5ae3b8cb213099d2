package checker

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"hammerlock/history"
)

// instant is the time at which a call took effect or a hold ended, in a page's story.
type instant struct {
	at   time.Duration
	what string // does, ends or forgets
	op   int32
	by   *window

	order float64 // rank of the hold, for effects at the same instant
}

// mostInstants is the largest number of operations of a history whose story is written.
const mostInstants = 5_000_000

func (i instant) compare(j instant) int {
	return cmp.Or(cmp.Compare(i.at, j.at), cmp.Compare(i.order, j.order))
}

// tellStory writes the instant at which each call took effect, page by page. If that fails, x.told gets the reason.
func (x *certificate) tellStory(verdicts []Verdict) {
	passed := slices.ContainsFunc(verdicts, func(v Verdict) bool {
		told := []string{Exclusion.Name, release.Name, leaseValidity.Name}
		return v.Status == Pass && slices.Contains(told, v.Checker)
	})
	switch {
	case !passed || !x.Claims.Excludes:
		x.told = "the lock does not claim to exclude, or no verdict on that passed"
		return
	case x.Partial != "":
		x.told = "the history is partial"
		return
	case len(x.Ops) > mostInstants:
		x.told = "there is no story of so long a history"
		return
	case len(x.upgrades) > 0:
		x.told = "there is no story of upgrades yet"
		return
	}
	for i := range x.Ops {
		if op := &x.Ops[i]; op.Kind == history.Extend && op.Hold == 0 && x.Callers > 0 {
			x.told = "there is no story of extensions of several pages yet"
			return
		}
	}
	if x.Processes > 1 {
		x.sweeper.scope = everywhere
	}
	for _, holds := range x.byKey {
		t := &teller{certificate: x}
		if why := t.page(holds); why != "" {
			x.told = why
			return
		}
		slices.SortStableFunc(t.instants, instant.compare)
		for _, i := range t.instants {
			x.instant(i)
		}
	}
}

func (x *certificate) instant(i instant) {
	b := append(x.text[:0], `{"at":`...)
	b = append(strconv.AppendInt(b, int64(i.at), 10), `,"`...)
	b = append(append(append(b, i.what...), `":"`...), x.id(i.op)...)
	if i.by != nil {
		b = append(append(b, `","by":"`...), x.id(i.by.op)...)
	}
	x.text = append(b, `"}`...)
	x.line(x.text)
}

// teller assigns to the calls of a page the instants at which they took effect. It goes forward in time, and each hold
// begins as early as possible.
type teller struct {
	*certificate
	instants []instant
	free     time.Duration // end of the last exclusive hold
	readers  time.Duration // end of the last shared hold
	placed   []placed      // exclusive holds, by time
	done     float64       // number of holds that have their instants
}

// placed is the time of an exclusive hold, and its rank.
type placed struct {
	period
	order float64
}

func (t *teller) add(list []instant, order float64) {
	for _, i := range list {
		i.order = order
		t.instants = append(t.instants, i)
	}
	t.done++
}

// page assigns the instants of a page. If that is impossible, it returns the reason; otherwise an empty text.
func (t *teller) page(holds []int32) string {
	var jobs []timed
	coupled := t.Sites < 2
	for _, n := range holds {
		h := &t.holds[n]
		s := t.sweeper.slot(h, coupled)
		switch {
		case len(t.reenters(h)) > 0 && !t.countable(h):
			return "there is no story of re-entries in doubt yet"
		case h.Outcome != history.OK:
			op := t.sweeper.proof(h)
			for _, i := range t.sentAgain[n] {
				if op == nil && t.Claims.Owned && t.Ops[i].Outcome == history.OK {
					op = &t.Ops[i]
				}
			}
			if op == nil {
				continue // the Acquire may have had no effect
			}
			s.hi = op.Return + t.doubt(op)
		}
		jobs = append(jobs, timed{at: s.hi, hold: n, slot: s})
	}
	slices.SortStableFunc(jobs, func(a, b timed) int { return cmp.Compare(a.at, b.at) })
	for i := range jobs {
		if !t.place(&jobs[i]) {
			return "the forward pass finds no instants for hold " + t.id(t.holds[jobs[i].hold].acquire)
		}
	}
	if t.Claims.Permits > 0 && !t.enough() {
		return "the forward pass finds no instants at which there were permits enough"
	}
	return ""
}

// place assigns the instants of a hold, after the holds before it or in a gap between them. It returns false if the
// hold fits nowhere.
func (t *teller) place(j *timed) bool {
	h := &t.holds[j.hold]
	switch {
	case t.Claims.Permits > 0:
		at := j.slot.lo
		if j.slot.kind == returned || j.slot.kind == maybe {
			at = j.slot.hi
		}
		list, _, ok := t.instantsOf(h, at)
		t.add(list, t.done)
		return ok
	case h.Permits > 0:
		list, end, ok := t.instantsOf(h, max(j.slot.lo, t.free))
		t.add(list, t.done)
		t.readers = max(t.readers, end)
		return ok && max(j.slot.lo, t.free) <= j.slot.hi
	}
	from := max(j.slot.lo, t.free, t.readers)
	if list, end, ok := t.instantsOf(h, from); ok && from <= j.slot.hi {
		t.placed = append(t.placed, placed{period{from, end}, t.done})
		t.add(list, t.done)
		t.free = end
		return true
	}
	for i := len(t.placed) - 1; i >= 0 && t.readers == 0; i-- { // in a gap before an earlier hold
		from, order := j.slot.lo, t.placed[i].order-1
		if i > 0 {
			from, order = max(from, t.placed[i-1].to), (t.placed[i-1].order+t.placed[i].order)/2
		}
		list, end, ok := t.instantsOf(h, from)
		if ok && from <= j.slot.hi && end <= t.placed[i].from {
			t.add(list, order)
			t.placed = slices.Insert(t.placed, i, placed{period{from, end}, order})
			return true
		}
		if i > 0 && t.placed[i-1].to < j.slot.lo {
			break
		}
	}
	return false
}

// countable reports whether the answers say which release of a hold is the outermost one.
func (t *teller) countable(h *hold) bool {
	return t.Claims.Owned && !h.doubtful && !slices.ContainsFunc(t.reenters(h), func(i int32) bool {
		return t.Ops[i].Outcome == history.Unknown
	})
}

// inner reports whether a call is a release after which its owner still has the lock.
func (t *teller) inner(h *hold, n int32) bool {
	return t.Ops[n].Kind == history.Release && slices.Contains(t.reenters(h), n)
}

// calls lists the extensions, re-entries and releases of a hold, sorted by call. Calls without an effect are left out.
func (t *teller) calls(h *hold) []int32 {
	list := slices.Concat(t.extends(h), t.reenters(h))
	if h.Release >= 0 {
		list = append(list, h.Release)
	}
	list = append(list, t.sentAgain[t.holdAt(t.acquire(h).ID)]...)
	slices.SortStableFunc(list, func(a, b int32) int {
		return cmp.Or(cmp.Compare(t.Ops[a].Call, t.Ops[b].Call), cmp.Compare(a, b))
	})
	return slices.DeleteFunc(slices.Compact(list), func(i int32) bool {
		op := &t.Ops[i]
		return op.Outcome == history.Failed && op.Reason != history.Lost
	})
}

// needs returns two times for each call k of a hold: alive[k], until which the lease before it must last, and at[k],
// its earliest instant. An extension first looks whether the lease is alive, and may set the new end later.
func (t *teller) needs(h *hold, calls []int32) (alive, at []time.Duration) {
	alive, at = make([]time.Duration, len(calls)+1), make([]time.Duration, len(calls))
	alive[len(calls)] = -history.Forever
	for k := len(calls) - 1; k >= 0; k-- {
		op := &t.Ops[calls[k]]
		alive[k], at[k] = alive[k+1], -history.Forever
		if op.Outcome != history.OK || op.Kind == history.Release && !t.Claims.Owned {
			continue
		}
		alive[k] = op.Call - t.doubt(op)
		switch at[k] = alive[k]; {
		case op.Kind != history.Release:
			if at[k] = max(at[k], minus(alive[k+1], t.rules.Most(op.TTL))); op.Kind == history.Acquire {
				alive[k] = at[k]
			}
		case t.inner(h, calls[k]): // it may renew the lease
			at[k] = max(at[k], minus(alive[k+1], t.rules.Most(h.TTL)))
			alive[k] = at[k]
		}
	}
	return alive, at
}

// instantsOf assigns instants to the calls of a hold that began at a moment: each as early as possible. The result ok
// is false if some call has no possible instant.
func (t *teller) instantsOf(h *hold, from time.Duration) (list []instant, end time.Duration, ok bool) {
	calls := t.calls(h)
	needs, first := t.needs(h, calls)
	at, base, life := from, from, t.acquire(h)
	list = append(list, instant{at: at, what: "does", op: h.acquire})
	for k, n := range calls {
		op := &t.Ops[n]
		over, last := t.ends(life, base), plus(base, t.rules.Most(life.TTL))
		switch {
		case op.Outcome == history.OK && (op.Kind != history.Release || t.Claims.Owned):
			looked := max(at, op.Call-t.doubt(op))
			if at = max(at, first[k]); op.Kind != history.Extend {
				looked = at
			}
			if looked > last || at > plus(op.Return, t.doubt(op)) {
				return nil, 0, false
			}
			list = append(list, instant{at: at, what: "does", op: n})
			switch {
			case op.Kind != history.Release:
				life, base = op, at
			case !t.inner(h, n):
				return t.denied(list, calls[k+1:], at)
			case needs[k+1] > last:
				life, base = t.acquire(h), at
			}
		case op.Outcome == history.Failed:
			if needs[k+1] > -history.Forever {
				return nil, 0, false // a later answer shows that the hold goes on
			}
			return t.refused(h, list, calls[k:], at, over)
		// an extension without an answer may have had no effect: use it only if the lease must last longer
		case op.Kind == history.Extend:
			if needs[k+1] > last && op.Call-t.doubt(op) <= last {
				at = max(at, op.Call-t.doubt(op), min(last, minus(needs[k+1], t.rules.Most(op.TTL))))
				list = append(list, instant{at: at, what: "does", op: n})
				life, base = op, at
			}
		default: // a release without an answer, or with an answer that does not show whose lock it was
			if needs[k+1] > -history.Forever {
				continue
			}
			if back := max(at, op.Call-t.doubt(op)); back <= over || op.Outcome == history.OK {
				if back > over {
					list = append(list, instant{at: over, what: "ends", op: h.acquire})
					return append(list, instant{at: back, what: "does", op: n}), over, true
				}
				return t.denied(append(list, instant{at: back, what: "does", op: n}), calls[k+1:], back)
			}
		}
	}
	if end = t.ends(life, base); t.Session && h.Crashed != history.Forever {
		end = min(end, max(at, h.Crashed))
	}
	if end != history.Forever {
		list = append(list, instant{at: end, what: "ends", op: h.acquire})
	}
	return list, end, true
}

// refused assigns instants to the given calls, the first of which was told that the hold is lost. The argument at is
// the instant of the call before them, and over is the end of the lease.
func (t *teller) refused(h *hold, list []instant, calls []int32, at, over time.Duration) (all []instant,
	end time.Duration, ok bool) {
	n, op := calls[0], &t.Ops[calls[0]]
	by, back := plus(op.Return, t.doubt(op)), max(at, op.Call-t.doubt(op))
	// on several sites, the release may only have ended the hold on the few sites that still had it
	if t.Sites > 1 && over > back && op.Kind == history.Release && back <= by {
		gone := instant{at: back, what: "ends", op: h.acquire}
		return t.denied(append(list, instant{at: back, what: "does", op: n}, gone), calls[1:], back)
	}
	if list, end, ok = t.lose(h, list, at, over, by); !ok {
		return nil, 0, false
	}
	return t.denied(list, calls, end)
}

// denied assigns instants to the calls after the end of a hold. It returns false if one of them succeeded.
func (t *teller) denied(list []instant, calls []int32, end time.Duration) ([]instant, time.Duration, bool) {
	at := end
	for _, n := range calls {
		op := &t.Ops[n]
		if op.Outcome == history.Unknown || op.Outcome == history.OK && t.Claims.Owned {
			if op.Outcome == history.OK {
				return nil, 0, false
			}
			continue
		}
		if at = max(at, op.Call-t.doubt(op)); at > plus(op.Return, t.doubt(op)) {
			return nil, 0, false
		}
		list = append(list, instant{at: at, what: "does", op: n})
	}
	return list, end, true
}

// ends is the earliest end of a lease that began at a moment.
func (t *teller) ends(op *history.Op, base time.Duration) time.Duration {
	least := t.rules.Least(op.TTL)
	told := op.Until != 0 && op.Until != history.Forever
	end := plus(base, least)
	switch {
	case !t.Claims.Expires:
	case told && (t.Claims.Begins || op.TTL == 0):
		end = min(end, op.Until-t.doubt(op))
	case t.Claims.Begins && op.Kind == history.Acquire:
		end = op.Call - t.doubt(op)
	case t.Sites > 1:
		end = min(end, plus(op.Call-t.doubt(op), least))
	}
	return max(end, base)
}

// lose ends a hold by the time `by`: its lease ends, or servers forget it. It returns false if neither is possible.
func (t *teller) lose(h *hold, list []instant, at, over, by time.Duration) ([]instant, time.Duration, bool) {
	if t.Session && h.Crashed != history.Forever {
		over = min(over, max(at, h.Crashed))
	}
	if over = max(over, at); over <= by {
		return append(list, instant{at: over, what: "ends", op: h.acquire}), over, true
	}
	w := t.forgot(h, by)
	if w == nil {
		return nil, 0, false
	}
	slack := t.Bounds.Slack
	if over = max(at, w.from-slack); over > by || over > plus(w.to, slack) {
		return nil, 0, false
	}
	return append(list, instant{at: over, what: "forgets", op: h.acquire, by: w}), over, true
}

// enough tells whether there were enough permits at each instant.
func (t *teller) enough() bool {
	list, out, held := slices.Clone(t.instants), 0, map[int32]bool{}
	slices.SortStableFunc(list, instant.compare)
	for _, i := range list {
		op := &t.Ops[i.op]
		n := t.holdAt(op.Hold)
		if n < 0 {
			n = t.holdAt(op.ID)
		}
		switch {
		case i.what == "does" && op.Kind == history.Acquire:
			out += t.weight(&t.holds[n])
			held[n] = true
		case op.Kind == history.Release && op.Outcome != history.Failed || i.what != "does":
			if held[n] {
				out -= t.weight(&t.holds[n])
			}
			held[n] = false
		}
		if out > t.Claims.Permits {
			return false
		}
	}
	return true
}
