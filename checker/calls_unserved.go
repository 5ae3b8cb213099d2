package checker

import (
	"fmt"

	"hammerlock/history"
	"hammerlock/internal/human"
)

func tried(op *history.Op) bool {
	return awaited(op) && op.Return != history.Forever && op.Reason != history.Canceled
}

// vainTries are the consecutive failed calls of one kind in a process. The field served says that the process had a
// regular answer before them, and the field going says that at least one call has failed. The fields first and last are
// indices in Ops.
type vainTries struct {
	served, going bool
	first, last   int
}

// unserved blames a lock if all calls of one kind in one process ended in errors for longer than the bound. Servers
// must have answered, and must have served the process before. For example, a client may keep asking a server that is
// no longer the primary, or keep calling a script that the servers have lost.
func (k *callsCheck) unserved() {
	all := make([][history.Release + 1]vainTries, len(k.pauses)) // by process and kind
	for i := range k.Ops {
		op := &k.Ops[i]
		if !tried(op) || int(op.Process) >= len(all) || vainly(op) && op.Latency() > k.promptness() {
			continue
		}
		switch p := &all[op.Process][op.Kind]; {
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
		for kind := range all[process] {
			k.inVain(int16(process), &all[process][kind])
		}
	}
}

// inVain judges consecutive failed calls of a process.
func (k *callsCheck) inVain(process int16, p *vainTries) {
	if !p.going {
		return
	}
	first, last := p.first, p.last
	from, to, bound := k.Ops[first].Call, k.Ops[last].Return, k.bound(history.Release)
	since, _, _ := k.served(from, to)
	if since == history.Forever || k.ran(process, since, to)-k.anySlack() < bound {
		return
	}
	n, begin := int64(0), -1
	for i := first; i <= last; i++ {
		op := &k.Ops[i]
		if op.Process == process && op.Kind == k.Ops[last].Kind && tried(op) && op.Call >= since && vainly(op) &&
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
			process, human.Quantity(n, op.Kind.String()), clock(k.Ops[begin].Call), clock(to), clock(since),
			human.Duration(bound)),
		fmt.Sprintf("the last was %s by %s", callName(op), who(op.Worker)),
	})
}
