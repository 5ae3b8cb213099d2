package checker

import (
	"fmt"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// manyErrors is how many tries with an error are enough to blame the lock.
const manyErrors = 20

// vainly tells whether a try ended in an error of the lock, rather than in a regular answer.
func vainly(op *history.Op) bool {
	return op.Outcome == history.Unknown && op.Reason != history.Busy || op.Outcome == history.Failed &&
		(op.Reason == history.Other || op.Reason == history.Unreachable)
}

func tried(op *history.Op) bool {
	return op.Kind == history.Acquire && op.Worker >= 0 && op.Return != history.Forever && op.Reason != history.Canceled
}

// vainTries are the tries of a process that have ended in errors since it was last served: the first and the last one.
type vainTries struct {
	served, going bool
	first, last   int
}

// unserved blames a lock if one of its processes was served before, and then all its tries ended in errors for longer
// than the bound although servers answered. For example, a client may go on asking a server that is no primary any
// more.
func (k *callsCheck) unserved() {
	all := make([]vainTries, len(k.pauses)) // by process
	for i := range k.Ops {
		op := &k.Ops[i]
		if !tried(op) || int(op.Process) >= len(all) || vainly(op) && op.Latency() > k.promptness() {
			continue
		}
		switch p := &all[op.Process]; {
		case !vainly(op):
			k.inVain(op.Process, p)
			*p = vainTries{served: true}
		case p.going:
			p.last = i
		case p.served:
			p.going, p.first, p.last = true, i, i
		}
	}
	for process := range all {
		k.inVain(int16(process), &all[process])
	}
}

// inVain judges the errors of a process.
func (k *callsCheck) inVain(process int16, p *vainTries) {
	if !p.going {
		return
	}
	first, last := p.first, p.last
	from, to, bound := k.Ops[first].Call, k.Ops[last].Return, k.bound(history.Release)
	if to-from < bound { // most are: the windows are not asked for those
		return
	}
	since, _, _ := k.served(from, to)
	if since == history.Forever || k.ran(process, since, to)-k.anySlack() < bound {
		return
	}
	n, begin := int64(0), -1
	for i := first; i <= last; i++ {
		if op := &k.Ops[i]; op.Process == process && tried(op) && op.Call >= since && vainly(op) &&
			op.Latency() <= k.promptness() {
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
		fmt.Sprintf("process %d: all its %s from %s to %s ended in errors, although servers answered since %s: "+
			"at most %s are explained",
			process, human.Quantity(n, "acquire"), clock(k.Ops[begin].Call), clock(to), clock(since),
			human.Duration(bound)),
		fmt.Sprintf("the last was %s by %s", callName(op), who(op.Worker)),
	})
}
