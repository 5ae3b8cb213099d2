package checker

import (
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// bars finds the first barred try in each period in which no worker can have held the lock.
func (l *livenessCheck) bars() []barred {
	if l.refusedFree != nil {
		return l.refusedFree
	}
	list := []barred{}
	l.idle(l.alone, l.kept, func(s stretch) { list = append(list, barred{stretch: s}) })
	slices.SortFunc(list, func(a, b barred) int { return byKeyAndTime(a.stretch, b.stretch) })
	free, refused := make([]stretch, len(list)), make([]int, len(list))
	for i := range list {
		free[i] = list[i].stretch
	}
	for i := range l.Ops {
		op := &l.Ops[i]
		if op.Kind != history.Acquire || op.Outcome != history.Failed || op.Reason != history.Busy || op.Worker < 0 {
			continue
		}
		if n := l.within(free, op); n >= 0 {
			if refused[n]++; refused[n] > collisions && list[n].try == nil {
				list[n].try = op
			}
		}
	}
	for _, n := range l.byCall {
		h := &l.holds[n]
		if h.Key < 0 || h.Outcome != history.OK {
			continue
		}
		for at := after(free, l.joint(h.Key), h.Return); at < len(free) && free[at].key == l.joint(h.Key); at++ {
			list[at].last = h
		}
	}
	l.refusedFree = slices.DeleteFunc(list, func(b barred) bool { return b.try == nil })
	return l.refusedFree
}

// writersBarred blames a lock that refuses a writer while no worker can hold the lock, for longer than the bound in
// total. Readers hold it in between, so each of these times may be short. A lock with a queue may refuse one waiter in
// favour of another, so it is not judged.
func (l *livenessCheck) writersBarred() {
	if !l.Claims.Readers || l.lingers {
		return
	}
	var free []stretch
	l.idle(l.alone, l.kept, func(s stretch) { free = append(free, s) })
	slices.SortFunc(free, byKeyAndTime)
	for _, w := range l.writers() {
		var all time.Duration
		var first, last *history.Op
		at := -1
		for _, op := range w {
			n := l.within(free, op)
			if n < 0 || l.disturbed.meets(op.Call, op.Return) {
				continue
			}
			if n == at {
				all += op.Return - last.Return
			}
			if at, last = n, op; first == nil {
				first = op
			}
		}
		if all > l.bound {
			l.accuse(history.Stuck, []history.Op{*first, *last}, fmt.Sprintf(
				"page %d: %s, a writer, was refused from %s to %s; for %s of that no worker can have had the lock; "+
					"at most %s are explained",
				first.Key, who(first.Worker), clock(first.Call), clock(last.Return), human.Duration(all),
				human.Duration(l.bound)))
		}
	}
}

// writers lists, for each visit that wanted the lock exclusively, its refused tries.
func (l *livenessCheck) writers() (visits [][]*history.Op) {
	open := map[int32]int{} // by worker: index of its visit, plus one
	for i := range l.Ops {
		op := &l.Ops[i]
		refused := op.Kind == history.Acquire && op.Outcome == history.Failed && op.Reason == history.Busy
		switch n := open[op.Worker]; {
		case op.Worker < 0 || op.Key < 0:
		case !refused:
			if op.Kind == history.Acquire || op.Kind == history.End {
				delete(open, op.Worker)
			}
		case op.Permits > 0 || !op.Outermost():
		case n > 0 && visits[n-1][0].Key == op.Key:
			visits[n-1] = append(visits[n-1], op)
		default:
			visits = append(visits, []*history.Op{op})
			open[op.Worker] = len(visits)
		}
	}
	return visits
}
