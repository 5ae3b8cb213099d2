package checker

import (
	"slices"

	"hammerlock/history"
)

// barred is a try that was refused although no worker can have had the lock, after more of them than can be refused
// because they met.
type barred struct {
	stretch
	try  *history.Op
	last *hold // that was granted last before it; nil = none
}

// bars finds the first such try of each stretch in which no worker can have had the lock.
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
		key := l.joint(op.Key)
		if n := after(free, key, op.Call); n < len(free) && free[n].key == key && free[n].from <= op.Call &&
			op.Return <= free[n].to {
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

// barredBy is a try that was refused while the key of an earlier hold, or of an earlier try, stood there and no worker
// can have had the lock; nil if there is none.
func (l *livenessCheck) barredBy(op *history.Op, o *owner) *history.Op {
	since := l.trace(op, o)[0].Return
	for _, b := range l.bars() {
		if b.key == l.joint(op.Key) && b.try.Call > since && b.try.Return < max(op.Call, op.Until) &&
			(b.last == o.hold || o.hold == nil) {
			return b.try
		}
	}
	return nil
}
