package checker

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

var calls = Checker{
	Name: history.Calls,
	Doc: "no call of the lock hangs, while servers answer, until it has to be called off, or goes on long " +
		"after that; calls do not end in errors while nothing is broken, and no call or timer ends its process",
	Causes: callCauses,
	Check:  judgeCalls,
}

// judgeCalls blames a lock for crashes that it caused, and for calls that did not return. A call is blamed if servers
// answered for longer than the bound of the call, or if its context had ended long before.
func judgeCalls(c *Case) Verdict {
	k := &callsCheck{Case: c}
	m := cmp.Or(c.Measured, &history.Measured{})
	open := int64(0)
	for i := range c.Ops {
		op := &c.Ops[i]
		switch {
		case !awaited(op):
		case op.Return == history.Forever:
			open++
		default:
			k.returned++
			k.measure(op)
			k.vain = k.vain || endedInError(op)
		}
	}
	for i := range m.Crashes {
		k.crashed(&m.Crashes[i])
	}
	for i := range m.Hung {
		k.hung(&m.Hung[i], m.Driver != nil)
	}
	if m.Driver != nil {
		k.unanswered()
	}
	if k.vain {
		k.unserved()
		k.errorsInCalm()
	}
	return k.verdict(open)
}

// hung judges a call that had to be cancelled. If driver is true, the lock runs in a program of its own, and its calls
// have no context that could have ended.
func (k *callsCheck) hung(h *history.Hung, driver bool) {
	op := k.calling(h)
	if op.Kind != 0 && !awaited(&op) {
		return // a call of the counter, not of the lock
	}
	since, why, lost := k.served(op.Call, h.CalledOff)
	bound, slack := k.bound(op.Kind), k.anySlack()
	last := cmp.Or(h.GivenUp, h.CalledOff)
	story := []string{fmt.Sprintf("%s called %s at %s, and it had not returned at %s",
		who(h.Worker), callName(&op), clock(op.Call), clock(last))}
	switch {
	case !lost && since != history.Forever && k.ran(op.Process, since, h.CalledOff)-slack >= bound:
		story[0] += fmt.Sprintf(", although servers answered since %s: at most %s are explained", clock(since),
			human.Duration(bound))
	case !driver && h.GivenUp > 0 && k.ran(op.Process, max(op.Call, h.CalledOff),
		h.GivenUp)-slack >= k.slowEver+patience:
		story[0] += fmt.Sprintf(", although its context had ended at %s", clock(h.CalledOff))
	case why != nil:
		k.blame(history.HungCall, testimony{}, why)
		return
	default:
		k.undecided = story[0] + fmt.Sprintf(": that is no longer than the %s which are explained",
			human.Duration(bound))
		return
	}
	story = append(story, k.meanwhile(&op, last))
	if h.Text != "" {
		story = append(story, "it was at, or said last:")
		story = append(story, strings.Split(h.Text, "\n")...)
	}
	k.accuseCall(history.HungCall, &op, story)
}

// calling returns the worker's call that was in progress when the suite cancelled it. A wait for a message is not
// recorded as a call. For such a wait, the result has no Kind, and its Call is the worker's last return.
func (k *callsCheck) calling(h *history.Hung) (found history.Op) {
	for i := range k.Ops {
		op := &k.Ops[i]
		background := op.Kind == history.Extend && !awaited(op)
		if op.Worker != h.Worker || background || op.Kind == history.End || op.Kind == history.Crash {
			continue
		}
		if op.Call <= h.CalledOff && op.Return > h.CalledOff {
			return *op
		}
		if op.Return <= h.CalledOff {
			found.Worker, found.Key, found.Process = op.Worker, op.Key, op.Process
			found.Call, found.Return = max(found.Call, op.Return), history.Forever
		}
	}
	return found
}

// meanwhile says in words which answers other workers got during a call.
func (k *callsCheck) meanwhile(call *history.Op, to time.Duration) string {
	n, last := int64(0), time.Duration(0)
	for i := range k.Ops {
		op := &k.Ops[i]
		if awaited(op) && op.Worker != call.Worker && op.Outcome != history.Unknown && op.Call > call.Call &&
			op.Return <= to {
			n, last = n+1, max(last, op.Return)
		}
	}
	if n == 0 {
		return "no other call of the lock had an answer meanwhile"
	}
	return fmt.Sprintf("meanwhile %s of other workers had an answer, the last at %s", human.Quantity(n, "call"),
		clock(last))
}

// unanswered blames calls that a lock's program never answered, not even after it was asked to cancel them.
func (k *callsCheck) unanswered() {
	for i := range k.Ops {
		op := &k.Ops[i]
		if !awaited(op) || op.Return == history.Forever || op.Reason != history.Canceled ||
			op.Outcome != history.Unknown || k.calledOff(op) {
			continue
		}
		since, why, lost := k.served(op.Call, op.Return)
		switch bound := k.bound(op.Kind); {
		case k.ran(op.Process, op.Call, op.Return) < bound:
		case lost || since == history.Forever || k.ran(op.Process, since, op.Return) < bound:
			k.blame(history.HungCall, testimony{}, why)
		default:
			k.accuseCall(history.HungCall, op, []string{
				fmt.Sprintf("%s called %s at %s, and the program had not answered at %s, also when it was asked to "+
					"call it off: at most %s are explained",
					who(op.Worker), callName(op), clock(op.Call), clock(op.Return), human.Duration(bound)),
				k.meanwhile(op, op.Return),
			})
		}
	}
}

// crashed blames the lock for a process that ended unexpectedly or reported a panic. The evidence is the last lock
// call of this process before that.
func (k *callsCheck) crashed(b *history.Breakdown) {
	var last history.Op
	for i := range k.Ops {
		if op := &k.Ops[i]; awaited(op) && op.Process == b.Process && op.Call <= b.At && op.Call >= last.Call {
			last = *op
		}
	}
	k.accuseCall(history.Panicked, &last, append([]string{fmt.Sprintf("%s, at %s", b.Text, clock(b.At))}, b.Said...))
}

func (k *callsCheck) verdict(open int64) Verdict {
	v := Verdict{Exposed: k.returned, Misses: map[string]int64{}}
	if open > 0 {
		v.Misses["without a return"] = open
	}
	if k.failed > 0 {
		v.Misses[history.EndedInErrors] = k.failed
	}
	worst := k.into(&v, callCauses)
	switch {
	case v.Status == Fail:
		v.Evidence, v.Story = worst.evidence, worst.story
		v.Summary = fmt.Sprintf("%s: %s", v.Cause, v.Story[0])
	case k.excused > 0:
		v.Summary = k.excuseText("calls that did not return")
	case k.undecided != "":
		v.Summary = k.undecided
	case k.returned == 0:
		v.Summary, v.scant = "the lock was not called", true
	default:
		v.Status = Pass
		v.Summary = fmt.Sprintf("%s returned, the slowest after %s", human.Quantity(k.returned, "call"),
			human.Duration(k.slowEver))
	}
	return v
}
