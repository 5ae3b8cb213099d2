package checker

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// Tries that end in an error at once, as a timeout does not, and how many of them tell.
const (
	soon       = 100 * time.Millisecond
	manyErrors = 20
)

// vainly tells whether a try ended in an error of the lock, and not in an answer.
func vainly(op *history.Op) bool {
	return op.Outcome == history.Unknown || op.Outcome == history.Failed && (op.Reason == history.Other || op.Reason == history.Unreachable)
}

func tried(op *history.Op) bool {
	return op.Kind == history.Acquire && op.Worker >= 0 && op.Return != history.Forever && op.Reason != history.Canceled
}

// unserved blames a process that was served before, and whose tries all ended in errors for longer than the bound, although servers
// answered: of a client that goes on asking one that is no primary any more, which may well answer that nothing is left to release.
func (k *callsCheck) unserved() {
	served, since := map[int16]bool{}, map[int16]int{} // by process; the first of the errors that go on, plus one
	last := map[int16]int{}
	over := func(process int16) {
		if since[process] > 0 {
			k.inVain(process, since[process]-1, last[process])
		}
		since[process] = 0
	}
	for i := range k.Ops {
		op := &k.Ops[i]
		switch {
		case !tried(op) || vainly(op) && op.Latency() > soon:
		case !vainly(op):
			over(op.Process)
			served[op.Process] = true
		case served[op.Process]:
			if last[op.Process] = i; since[op.Process] == 0 {
				since[op.Process] = i + 1
			}
		}
	}
	for _, process := range slices.Sorted(maps.Keys(since)) {
		over(process)
	}
}

// inVain judges the errors of a process, from the first to the last.
func (k *callsCheck) inVain(process int16, first, last int) {
	from, to := k.Ops[first].Call, k.Ops[last].Return
	since, _, _ := k.served(from, to)
	bound := k.bound(history.Release)
	if since == history.Forever || k.ran(process, since, to)-k.anySlack() < bound {
		return
	}
	n, begin := int64(0), -1
	for i := first; i <= last; i++ {
		if op := &k.Ops[i]; op.Process == process && tried(op) && op.Call >= since && vainly(op) && op.Latency() <= soon {
			if n++; begin < 0 {
				begin = i
			}
		}
	}
	if n < manyErrors {
		return
	}
	op := &k.Ops[last]
	k.accuseCall(history.Unanswered, op, []string{
		fmt.Sprintf("process %d: all its %s from %s to %s ended in errors, although servers answered since %s: at most %s are explained",
			process, human.Quantity(n, "acquire"), clock(k.Ops[begin].Call), clock(to), clock(since), human.Duration(bound)),
		fmt.Sprintf("the last was %s by %s", callName(op), who(op.Worker)),
	})
}
