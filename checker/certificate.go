package checker

import (
	"bufio"
	"io"
	"slices"
	"time"

	"hammerlock/history"
)

// WriteCertificate writes proofs of the verdicts on a case.
func (c *Case) WriteCertificate(w io.Writer, verdicts []Verdict, refutes Contradicts) error {
	x := &certificate{Case: c, sweeper: newSweeper(c), refutes: refutes, w: bufio.NewWriterSize(w, 1<<16)}
	x.put(struct {
		Certificate string `json:"certificate"`
		Ops         int    `json:"ops"`
	}{"hammerlock", len(c.Ops)})
	x.tellStory(verdicts)
	x.chains()
	for i := range verdicts {
		v := &verdicts[i]
		p := proof{Verdict: v.Checker, Status: v.Status, Cause: v.Cause}
		name, of, why := x.prove(v)
		if p.Why = why; why == "" {
			p.Proof = name
			for _, n := range of {
				p.Of = append(p.Of, x.id(n))
			}
		}
		x.put(p)
	}
	x.put(struct {
		End   string `json:"end"`
		Facts int    `json:"facts"`
	}{"complete", x.facts + 1})
	if x.err == nil {
		x.err = x.w.Flush()
	}
	return x.err
}

// prove returns the proof of a verdict, or why none exists: the proof's name, and the operations that it is about.
func (x *certificate) prove(v *Verdict) (name string, of []int32, why string) {
	switch v.Status {
	case Pass:
		return x.passed(v)
	case Fail:
		return x.failed(v)
	case NotJudged:
		return "", nil, "it claims nothing"
	}
	if list := x.excused(v); list != nil {
		return "window", list, ""
	}
	return "", nil, "it claims nothing: " + v.Summary
}

func (x *certificate) passed(v *Verdict) (name string, of []int32, why string) {
	switch v.Checker {
	case Exclusion.Name:
		if x.told == "" && v.Misses["overrun"] > 0 {
			return "", nil, "a holder believed in the lock for too long without a use: there is no proof of that yet"
		}
		return "alone", nil, x.told
	case release.Name, linearizable.Name:
		return "story", nil, x.told
	case leaseValidity.Name:
		switch {
		case x.told != "":
			return "", nil, x.told
		case x.Claims.Renews && x.anyLost():
			return "", nil, "that a lost lease was renewed in time is a duty, of which there is no proof yet"
		}
		return "leases", nil, ""
	case lostUpdates.Name:
		if v.Misses["unacknowledged page views lost"] > 0 {
			return "", nil, "a load saw a store without an answer that is not in the chain: " +
				"there is no proof of that yet"
		}
		for k := range x.chained {
			if !x.chained[k] {
				return "", nil, "the stores of a page have no whole chain, or no names"
			}
		}
		return "chain", nil, ""
	case fencing.Name:
		return "order", nil, ""
	}
	return "", nil, "there is no proof of that yet"
}

// anyLost tells whether any owner was told that its hold was lost.
func (c *Case) anyLost() bool {
	for i := range c.Ops {
		op := &c.Ops[i]
		if op.Kind == history.Lose || (op.Kind == history.Release || op.Kind == history.Extend) &&
			op.Outcome == history.Failed && (op.Reason == history.Lost || op.Reason == history.Busy) {
			return true
		}
	}
	return false
}

// excused lists the operations of an unplanned event and of the violation that it excuses; nil if there are none, or if
// a formula cannot show the excuse.
func (x *certificate) excused(v *Verdict) []int32 {
	if v.excuse == nil {
		return nil
	}
	event := &x.Ops[v.excuse.op]
	switch event.Kind {
	case history.Incident, history.Role, history.Gap:
	default:
		return nil
	}
	for _, w := range x.windows {
		if w.fault && w.from <= event.Return && event.Call <= plus(w.to, x.recovery()) {
			return nil // a formula cannot tell whether the fault or the event is the reason
		}
	}
	list, from, to := x.spared(v.spared), history.Forever, time.Duration(0)
	for _, n := range list {
		from, to = min(from, x.Ops[n].Call), max(to, x.Ops[n].Latest())
	}
	slack := x.Bounds.Slack
	if event.Call > to+slack || event.Kind != history.Role && plus(event.Return, slack) < from {
		return nil
	}
	return append([]int32{v.excuse.op}, list...)
}

// spared lists the operations of an excused violation.
func (x *certificate) spared(violation any) (list []int32) {
	add := func(n int32) {
		if n >= 0 && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	switch w := violation.(type) {
	case finding:
		for _, at := range [2]int32{w.pair.first, w.pair.second} {
			if at >= 0 && w.cause != history.Phantom && w.cause != history.PartKept {
				add(x.holds[at].acquire)
				add(x.holds[at].Uses[1])
			}
		}
	case disordered:
		add(w.first)
		add(w.second)
	case testimony:
		for i := range w.evidence {
			add(x.at(w.evidence[i].ID))
		}
	case witness:
		add(w.store)
		add(w.other)
	}
	for _, n := range list {
		if h := x.hold(x.Ops[n].Hold); h != nil {
			add(h.acquire)
		}
	}
	return list
}
