package checker

import (
	"fmt"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

var reentrancy = Checker{
	Name:    "reentrancy",
	Doc:     "an owner that acquires again is told the right count, keeps its token, and is free after as many releases",
	Causes:  reentryCauses,
	Applies: func(h *history.Header) bool { return h.Claims.Reentrant },
	Check:   judgeReentrancy,
}

// reentryCauses are the causes, the worst first.
var reentryCauses = []string{"count", "token-changed", "self-refusal"}

// nested is the count of a hold: it lies between two bounds, which diverge with every unknown outcome.
type nested struct {
	least, most int64
	proof       time.Duration // the call of the last grant or extension that was acknowledged
	ttl         time.Duration
	over        bool // the owner was answered so, or it may have expired: nothing more is claimed
	inner       bool
	counted     bool // the lock tells how many holds there are
}

type reentries struct {
	*Case
	ruler
	holds   []nested
	exposed int64
	blames[[2]int32]
}

// judgeReentrancy replays each hold's count. The operations of a hold are one worker's, so the order of their returns
// is the order of their calls.
func judgeReentrancy(c *Case) Verdict {
	r := &reentries{Case: c, ruler: ruler{c: c}, holds: make([]nested, len(c.holds))}
	renewed := map[int32]int32{} // by extension that names no hold: the hold
	for n := range c.holds {
		for _, i := range c.holds[n].Extends {
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
		at := c.index.hold(op.Hold)
		if n, ok := renewed[int32(i)]; ok {
			at = n
		} else if op.Kind == history.Acquire && op.Hold == 0 {
			at = c.index.hold(op.ID)
		}
		if at >= 0 {
			r.step(&r.holds[at], &c.holds[at], int32(i))
		}
	}
	return r.verdict()
}

func (r *reentries) step(n *nested, h *hold, i int32) {
	op := &r.Ops[i]
	if op.ID == h.ID {
		*n = nested{least: 1, most: 1, proof: op.Call, ttl: op.TTL, over: op.Outcome != history.OK, counted: op.Value != 0}
		r.told(n, h, i)
		return
	}
	if !n.over {
		n.over = op.Return > plus(n.proof, r.least(n.ttl))
	}
	if n.over {
		return
	}
	switch op.Kind {
	case history.Extend:
		if op.Outcome == history.OK {
			n.proof, n.ttl = op.Call, op.TTL
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
		free := n.least == 0 // an unknown release may have ended the hold: this one may be new
		n.least, n.most = n.least+1, n.most+1
		if op.TTL > 0 {
			n.proof, n.ttl = op.Call, op.TTL
		}
		if !free && (op.Fence != 0 && h.Fence != 0 && op.Fence != h.Fence || op.Token != 0 && h.Token != 0 && op.Token != h.Token) {
			r.wrong("token-changed", h, i)
		}
		r.told(n, h, i)
	case history.Failed:
		n.over = op.Reason == history.Lost
		gone := r.forgot(h, op.Return)
		if op.Reason == history.Busy || n.over && n.least > 0 && (gone == nil || !gone.fault) {
			r.wrong("self-refusal", h, i)
		}
	default:
		n.most++
	}
}

func (r *reentries) leave(n *nested, h *hold, i int32) {
	op := &r.Ops[i]
	switch op.Outcome {
	case history.OK:
		n.least, n.most = max(n.least-1, 0), n.most-1
		if !n.counted {
			if n.most < 0 {
				r.wrong("count", h, i)
			}
			n.over = n.most <= 0
			return
		}
		if op.Value == 0 {
			if n.least > 0 || n.most < 0 {
				r.wrong("count", h, i)
			}
			n.over = true
			return
		}
		r.told(n, h, i)
	case history.Failed:
		if n.over = op.Reason == history.Lost; n.counted { // who says how many are to be left leaves a nested hold with the next one
			n.least = max(n.least-1, 1)
		}
	default:
		n.least = max(n.least-1, 0)
	}
}

// told compares the count with the lock's answer, and takes that answer from then on.
func (r *reentries) told(n *nested, h *hold, i int32) {
	said := r.Ops[i].Value
	if n.over || said == 0 {
		return
	}
	if said < n.least || said > n.most {
		r.wrong("count", h, i)
	}
	n.least, n.most = said, said
}

// wrong blames an answer.
func (r *reentries) wrong(cause string, h *hold, i int32) {
	r.blame(cause, [2]int32{r.index.at(h.ID), i}, unplanned(r.forgot(h, r.Ops[i].Return)))
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
		v.Summary = fmt.Sprintf("%s wrong answers in %s holds that were re-entered", human.Count(v.Violations), human.Count(r.exposed))
	case r.exposed == 0:
		v.Summary = "no hold was re-entered"
	case r.excused > 0:
		v.Summary = r.excuseText("wrong answers")
	default:
		v.Status = Pass
		v.Summary = fmt.Sprintf("%s holds re-entered, counts and tokens right: %s", human.Count(r.exposed), atMost(r.exposed))
	}
	return v
}
