package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

var calls = Checker{
	Name: history.Calls,
	Doc: "every call of the lock returns within its bound, or soon after its context has ended, " +
		"and no call or timer of it ends its process",
	Causes: callCauses,
	Check:  judgeCalls,
}

var callCauses = []string{history.Panicked, history.HungCall, history.Unanswered}

type callsCheck struct {
	*Case
	blames[testimony]
	returned  int64
	slowest   time.Duration // longest undisturbed call; an Acquire counts without its wait
	slowEver  time.Duration // longest call that was not cancelled, including disturbed calls
	undecided string
	vain      bool  // a call ended in an error
	failed    int64 // calls that ended in an error before anything was broken

	disturbing *disturbances // nil = not computed yet
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

// awaited reports whether an operation is a lock call that a worker waits for. A renewal in the background is not such
// a call: it is recorded in a lane (a log) of its own, which has no grants.
func awaited(op *history.Op) bool {
	switch op.Kind {
	case history.Acquire, history.Release:
		return op.Worker >= 0
	case history.Extend:
		return op.Worker >= 0 && op.Hold.Lane() == op.ID.Lane()
	}
	return false
}

// calledOff reports whether a call never returned, or returned only after the suite had cancelled it at the end of
// the run.
func (c *Case) calledOff(op *history.Op) bool {
	return c.Measured != nil && slices.ContainsFunc(c.Measured.Hung, func(h history.Hung) bool {
		return h.Worker == c.Caller(op.Worker) && op.Return > h.CalledOff
	})
}

func (k *callsCheck) measure(op *history.Op) {
	if op.Reason == history.Canceled || k.calledOff(op) {
		return
	}
	took := op.Latency()
	if op.Kind == history.Acquire {
		took = max(took-k.Wait, 0)
	}
	k.slowEver = max(k.slowEver, took)
	if took > k.slowest {
		if _, why, _ := k.served(op.Call, op.Return); why == nil {
			k.slowest = took
		}
	}
}

// bound is the longest time that a call may take while servers answer. It is the sum of the slowest undisturbed call,
// the constant patience and a lease, if leases expire. An Acquire may also take the time for which it waits.
func (k *callsCheck) bound(kind history.Kind) time.Duration {
	bound := k.slowest + patience
	if k.Claims.Expires {
		bound += k.lease
	}
	if kind == history.Acquire || kind == 0 {
		bound += k.Wait
	}
	return bound
}

// disturbances are windows, which are periods with a fault or an unplanned event. The list all has those in which
// servers may not answer. The list links has those in which messages may be lost.
type disturbances struct{ all, links reaching }

func (c *Case) disturbances() *disturbances {
	var all, links []*window
	for _, w := range c.servers {
		e := w.effect
		harmless := func(p history.Party) bool { return p == history.Holders || p == history.Nobody }
		if e.Known() && !slices.ContainsFunc(e.Hits, func(p history.Party) bool { return !harmless(p) }) {
			continue
		}
		if all = append(all, w); e.Hit(history.Links) {
			links = append(links, w)
		}
	}
	return &disturbances{newReaching(all), newReaching(links)}
}

// served returns the time from which servers answered during a call. The result why is the window that prevented
// answers before that time; nil if none existed. The result lost says that a message of the call may have been lost.
func (k *callsCheck) served(from, to time.Duration) (since time.Duration, why *window, lost bool) {
	if k.disturbing == nil {
		k.disturbing = k.disturbances()
	}
	since, lost = from, k.disturbing.links.find(from, to) != nil
	if why = k.disturbing.all.find(minus(from, k.recovery()), to); why != nil {
		since = max(from, plus(why.to, k.recovery()))
	}
	return since, why, lost
}

// ran returns how long a process ran between two moments, without its pauses.
func (k *callsCheck) ran(process int16, from, to time.Duration) time.Duration {
	if to <= from || int(process) >= len(k.pauses) { // a history without operations has no pauses
		return 0
	}
	return to - from - k.stillFor(process, from, to)
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

func callName(op *history.Op) string {
	if op.Kind == 0 {
		return fmt.Sprintf("the lock of page %d to wait", op.Key)
	}
	return fmt.Sprintf("%s of page %d", op.Kind, op.Key)
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

func (k *callsCheck) accuseCall(cause string, op *history.Op, story []string) {
	var evidence []history.Op
	if op.Kind != 0 {
		evidence = []history.Op{*op}
	}
	k.blame(cause, testimony{evidence, story}, nil)
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
