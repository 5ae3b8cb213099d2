package checker

import (
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
)

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

// ran returns how long a process certainly ran between two moments, without its pauses.
func (k *callsCheck) ran(process int16, from, to time.Duration) time.Duration {
	if to <= from || int(process) >= len(k.pauses) { // a history without operations has no pauses
		return 0
	}
	return to - from - k.stood(process, from, to)
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

func (k *callsCheck) accuseCall(cause string, op *history.Op, story []string) {
	var evidence []history.Op
	if op.Kind != 0 {
		evidence = []history.Op{*op}
	}
	k.blame(cause, testimony{evidence, story}, nil)
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

func callName(op *history.Op) string {
	if op.Kind == 0 {
		return fmt.Sprintf("the lock of page %d to wait", op.Key)
	}
	return fmt.Sprintf("%s of page %d", op.Kind, op.Key)
}

var callCauses = []string{history.Panicked, history.HungCall, history.Unanswered}

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
