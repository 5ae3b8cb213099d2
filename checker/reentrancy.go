package checker

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

var reentrancy = Checker{
	Name:    "reentrancy",
	Doc:     "an owner that acquires again gets the right count, keeps its token, and is free after as many releases",
	Causes:  reentryCauses,
	Applies: func(h *history.Header) bool { return h.Claims.Reentrant },
	Check:   judgeReentrancy,
}

// reentryCauses lists the causes of failed verdicts of this checker, the worst first.
var reentryCauses = []string{history.WrongCount, history.TokenChanged, history.SelfRefusal}

// nested has the possible states of a hold: how often it was entered, and how many entries and releases without an
// answer may still take effect.
type nested struct {
	states  []depth       // nil = entered once
	good    time.Duration // earliest end of the lease, by the last acknowledged grant or extension
	over    bool          // nothing more is judged: the owner was refused, or the hold may have expired
	inner   bool
	counted bool // the lock reports the number of entries
}

type depth struct{ holds, ins, outs int32 }

// mostStates is the largest number of possible states with which a hold is judged.
const mostStates = 256

// move first lets each call without an answer take effect, or not. Then it replaces each possible state by the result
// of the function `next`. If `next` accepts no state, move changes nothing and returns false.
func (n *nested) move(next func(depth) (depth, bool)) bool {
	before, after := n.possible(), map[depth]bool{}
	for _, d := range before {
		if to, ok := next(d); ok {
			after[to] = true
		}
	}
	if len(after) == 0 {
		return false
	}
	n.states = slices.Collect(maps.Keys(after))
	n.over = n.over || len(after) > mostStates
	return true
}

// possible lists the states that are possible now. Each call without an answer may have taken effect by now, or not.
func (n *nested) possible() []depth {
	list := slices.Clone(n.states)
	if list == nil {
		list = []depth{{holds: 1}}
	}
	known := map[depth]bool{}
	for _, d := range list {
		known[d] = true
	}
	for i := 0; i < len(list); i++ {
		d := list[i]
		for _, to := range [2]depth{{d.holds + 1, d.ins - 1, d.outs}, {max(d.holds-1, 0), d.ins, d.outs - 1}} {
			if to.ins >= 0 && to.outs >= 0 && !known[to] {
				known[to], list = true, append(list, to)
			}
		}
	}
	return list
}

// counts reports whether the answer to a call says how many entries there are.
func (n *nested) counts(op *history.Op) bool {
	return n.counted && (op.Kind == history.Release || op.Value != 0)
}

// follow replaces each possible state by the one after a re-entry or release. If the answer is wrong in all states, it
// changes nothing and returns false. A lock that reports counts also counts a release that failed, but not below one.
func (n *nested) follow(op *history.Op) bool {
	enters := op.Kind == history.Acquire
	return n.move(func(d depth) (depth, bool) {
		switch {
		case op.Outcome == history.Unknown && enters:
			d.ins++
		case op.Outcome == history.Unknown:
			d.outs++
		case op.Outcome == history.Failed && !enters && n.counted:
			d.holds = max(d.holds-1, 1)
		case op.Outcome == history.Failed:
		case enters:
			d.holds++
			return d, !n.counts(op) || int64(d.holds) == op.Value
		default:
			d.holds--
			return d, d.holds >= 0 && (!n.counts(op) || int64(d.holds) == op.Value)
		}
		return d, true
	})
}

type reentries struct {
	*Case
	ruler
	under   map[int32]*nested // hold -> its states, as long as it is judged
	exposed int64
	blames[[2]int32]
}

// judgeReentrancy replays the count of each hold. All operations of a hold are of one worker, so their returns have the
// same order as their calls.
func judgeReentrancy(c *Case) Verdict {
	r := &reentries{Case: c, ruler: ruler{c: c}, under: map[int32]*nested{}}
	renewed := map[int32]int32{} // extension that names no hold -> the hold
	for n := range c.holds {
		for _, i := range c.extends(&c.holds[n]) {
			if c.Ops[i].Hold == 0 {
				renewed[i] = int32(n)
			}
		}
	}
	for i := range c.Ops {
		op := &c.Ops[i]
		switch op.Kind {
		case history.Acquire, history.Release, history.Extend:
		default:
			continue
		}
		at := c.holdAt(op.Hold)
		if n, ok := renewed[int32(i)]; ok {
			at = n
		} else if op.Kind == history.Acquire && op.Hold == 0 {
			at = c.holdAt(op.ID)
		}
		if at >= 0 && int32(i) == c.holds[at].acquire {
			r.under[at] = &nested{}
		}
		if n := r.under[at]; n != nil {
			if r.step(n, &c.holds[at], int32(i)); n.over {
				delete(r.under, at)
			}
		}
	}
	return r.verdict()
}

func (r *reentries) step(n *nested, h *hold, i int32) {
	op := &r.Ops[i]
	if i == h.acquire {
		*n = nested{good: r.promised(op), over: op.Outcome != history.OK, counted: op.Value != 0}
		if said := op.Value; said > 1 && !n.over {
			r.wrong(history.WrongCount, n, h, i)
		}
		return
	}
	if !n.over {
		n.over = op.Return > n.good
	}
	if n.over {
		return
	}
	switch op.Kind {
	case history.Extend:
		if op.Outcome == history.OK {
			n.good = r.promised(op)
		}
		n.over = op.Outcome == history.Failed && op.Reason == history.Lost
	case history.Acquire:
		r.enter(n, h, i)
	case history.Release:
		r.leave(n, h, i)
	}
}

func (r *reentries) enter(n *nested, h *hold, i int32) {
	op := &r.Ops[i]
	if !n.inner {
		n.inner = true
		r.exposed++
	}
	switch op.Outcome {
	case history.OK:
		free := slices.ContainsFunc(n.possible(), func(d depth) bool { return d.holds == 0 }) // it may be a new hold
		if op.TTL > 0 {
			n.good = r.promised(op)
		}
		first := r.acquire(h)
		if !free && (op.Fence != 0 && first.Fence != 0 && op.Fence != first.Fence || op.Token != 0 &&
			first.Token != 0 && op.Token != first.Token) {
			r.wrong(history.TokenChanged, n, h, i)
		}
		r.told(n, h, i)
	case history.Failed:
		n.over = op.Reason == history.Lost || op.Reason == history.Busy
		if n.over && r.held(n, h, op) {
			r.wrong(history.SelfRefusal, n, h, i)
		}
	default:
		n.follow(op)
	}
}

// held reports whether the owner certainly held the lock when it was refused, and no fault explains a loss.
func (r *reentries) held(n *nested, h *hold, op *history.Op) bool {
	gone := r.forgot(h, op.Return)
	return (gone == nil || !gone.fault) && !slices.ContainsFunc(n.possible(), func(d depth) bool {
		return d.holds == 0
	})
}

func (r *reentries) leave(n *nested, h *hold, i int32) {
	op := &r.Ops[i]
	switch op.Outcome {
	case history.OK:
		r.told(n, h, i)
		n.over = n.over || n.counted && op.Value == 0 || !slices.ContainsFunc(n.possible(), func(d depth) bool {
			return d.holds > 0
		})
	case history.Failed:
		if op.Reason == history.Lost && n.inner && r.held(n, h, op) {
			r.wrong(history.SelfRefusal, n, h, i)
		}
		n.over = op.Reason == history.Lost
		n.follow(op)
	default:
		n.follow(op)
	}
}

// told follows a successful call, and compares the new count with the answer. After a wrong answer, it goes on with the
// count in the answer.
func (r *reentries) told(n *nested, h *hold, i int32) {
	op := &r.Ops[i]
	if n.follow(op) {
		return
	}
	r.wrong(history.WrongCount, n, h, i)
	if n.states = []depth{{holds: int32(min(max(op.Value, 0), math.MaxInt16))}}; !n.counts(op) {
		n.over = true
	}
}

// wrong blames an answer. If servers forgot the hold because of a planned fault, it blames nothing: that is judged by
// the checker of exclusion.
func (r *reentries) wrong(cause string, n *nested, h *hold, i int32) {
	why := r.forgot(h, r.Ops[i].Return)
	if why != nil && why.fault {
		n.over = true
		return
	}
	r.blame(cause, [2]int32{h.acquire, i}, why)
}

func (r *reentries) verdict() Verdict {
	v := Verdict{Exposed: r.exposed}
	worst := r.into(&v, reentryCauses)
	switch {
	case v.Status == Fail:
		for j, i := range worst {
			if op := &r.Ops[i]; j == 0 || i != worst[0] {
				v.Evidence = append(v.Evidence, *op)
				v.Story = append(v.Story, fmt.Sprintf("%s: %s of hold %s %s at %s, told %d holds, fencing token %d",
					who(op.Worker), op.Kind, op.Hold, op.Outcome, clock(op.Return), op.Value, op.Fence))
			}
		}
		v.Summary = fmt.Sprintf("%s wrong answers in %s holds that were re-entered", human.Count(v.Violations),
			human.Count(r.exposed))
	case r.exposed == 0:
		v.Summary = "no hold was re-entered"
	case r.excused > 0:
		v.Summary = r.excuseText("wrong answers")
	default:
		v.Status = Pass
		v.Summary = fmt.Sprintf("%s holds re-entered, counts and tokens right: %s", human.Count(r.exposed),
			atMost(r.exposed))
	}
	return v
}
