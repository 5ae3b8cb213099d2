package checker

import (
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// owner is what the history has of a token that was found after the run.
type owner struct {
	hold    *hold
	refused int32 // into Ops, plus one: an acquire that was refused as busy
	sites   int   // where it was found

	asked    time.Duration // the longest lease that was asked for by those that were refused
	overlong bool          // it was seen with a longer life than any lease
}

// leaks judges the keys that were found after the run, and those that were seen during it with a longer life than any
// lease. It is false if none was found after it.
func (l *livenessCheck) leaks() bool {
	owners := map[uint64]*owner{}
	scanned := false
	for _, i := range l.events {
		op := &l.Ops[i]
		found := op.Kind == history.Found && op.Outcome != history.Failed
		if l.Claims.Permits > 0 || !found && !l.overlong(op) { // of a semaphore it tells how many are free
			continue
		}
		o := owners[l.mark(op.Token, op.Key)]
		if o == nil {
			o = &owner{}
			owners[l.mark(op.Token, op.Key)] = o
		}
		if found {
			scanned, o.sites = true, o.sites+1
		}
	}
	if len(owners) == 0 {
		return false
	}
	for i := range l.Ops {
		if op := &l.Ops[i]; op.Kind == history.Acquire && op.Outcome == history.Failed && op.Token != 0 {
			if o := owners[l.mark(op.Token, op.Key)]; o != nil &&
				(op.Reason == history.Busy || op.Reason == history.Quorum) {
				o.refused, o.asked = int32(i)+1, max(o.asked, op.TTL)
			}
		}
	}
	for _, n := range l.byCall {
		h := &l.holds[n]
		if token := l.acquire(h).Token; token != 0 {
			if o := owners[l.mark(token, h.Key)]; o != nil {
				o.hold = h
			}
		}
	}
	for _, i := range l.events {
		op := &l.Ops[i]
		switch o := owners[l.mark(op.Token, op.Key)]; {
		case op.Kind == history.Found && op.Outcome != history.Failed:
			l.found(op, o)
		case o != nil && !o.overlong && l.overlong(op):
			o.overlong = true // it is seen again and again
			l.outlives(op, o)
		}
	}
	return scanned
}

// overlong tells whether a key was seen during the run that will live longer than any lease.
func (l *livenessCheck) overlong(op *history.Op) bool {
	return op.Kind == history.Sight && op.Outcome != history.Failed && op.Until-op.Return > l.lease && l.ttl > 0
}

// outlives blames a key with a longer life than any lease, unless a clock explains it.
func (l *livenessCheck) outlives(op *history.Op, o *owner) {
	switch {
	case op.Until-op.Return <= l.longest(o.asked):
		return // a try that was refused had asked for as long a lease
	case op.Until == history.Forever && (!l.Claims.Expires || o.hold == nil || op.Call < o.hold.Return):
		return // it may be a record that stays when the lock is free, or is not granted yet
	}
	trace, since := l.trace(op, o), time.Duration(0)
	if len(trace) > 1 {
		since = trace[0].Call // else it is not known who asked for it
	}
	if l.stretched(since, op.Return) != nil {
		l.misses["over-life"]++
		return
	}
	l.stays(history.TTLTooLong, op, o,
		fmt.Sprintf("the key of page %d was on node %d at %s and expires at %s, later than any lease of at most %s",
			op.Key, op.Value, clock(op.Call), clock(op.Until), human.Duration(l.ttl)))
}

// found judges one key. One that will expire is counted, and no violation, after a fault, or on a minority of the
// sites if the lock may have given a slow one up.
func (l *livenessCheck) found(op *history.Op, o *owner) {
	where := fmt.Sprintf("the key of page %d was on node %d at %s", op.Key, op.Value, clock(op.Call))
	switch {
	case op.Until == history.Forever:
		l.stays(history.Leak, op, o, where+" and never expires")
		return
	case op.Until <= op.Call:
		return // it has expired and is not yet removed
	case op.Until-op.Return > l.lease && l.ttl > 0:
		l.outlives(op, o)
		return
	}
	cause, quick := "", false
	var calls []*history.Op // after which nothing should be left
	if o.hold != nil {
		// it may have had its effect after the release
		late := func(i int32) bool { return l.Ops[i].Outcome == history.Unknown }
		if r := o.hold.Release; r >= 0 && l.Ops[r].Outcome == history.OK &&
			!slices.ContainsFunc(l.reenters(o.hold), late) {
			cause, calls = history.Leak, []*history.Op{l.acquire(o.hold), &l.Ops[r]}
			for _, i := range l.extends(o.hold) {
				calls = append(calls, &l.Ops[i])
			}
			quick = l.quick(calls[0]) && l.quick(calls[1])
			where += fmt.Sprintf(", though %s was told at %s that hold %s is released", who(o.hold.Worker),
				clock(l.Ops[r].Return), l.acquire(o.hold).ID)
		}
	} else if o.refused > 0 {
		try := &l.Ops[o.refused-1]
		cause, calls, quick = l.phantom(try), []*history.Op{try}, l.quick(try)
		where += fmt.Sprintf(", though %s was told at %s that it was not granted the lock", who(try.Worker),
			clock(try.Return))
		if try.Reason == history.Quorum {
			cause = history.Leftover
		}
	}
	if 2*o.sites <= l.Sites && cause != "" {
		cause = history.Leftover
	}
	switch {
	case cause == "":
		l.misses["found, and to expire"]++
	case l.left(op, calls):
		l.misses["left behind around a fault"]++
	case cause == history.Leftover && !(quick && l.Claims.Cleans):
		l.misses["left on a minority of the sites"]++
	default:
		l.stays(cause, op, o, where)
	}
}

// stays blames a key that stays, of a lock that claims to clean, or one by which others were refused. Any other is a
// record, which a lock may keep when it is free.
func (l *livenessCheck) stays(cause string, op *history.Op, o *owner, story string) {
	if l.Claims.Cleans {
		l.accuse(cause, l.trace(op, o), story)
		return
	}
	try := l.barredBy(op, o)
	if try == nil {
		l.misses["stays, and refuses no worker"]++
		return
	}
	l.accuse(cause, append(l.trace(op, o), *try), fmt.Sprintf(
		"%s; %s was refused at %s, when no worker can have had the lock", story, who(try.Worker), clock(try.Return)))
}

// left tells whether a disturbance can have left a key behind: while the hold was asked for, prolonged or given back,
// or because servers forgot since that it was given back.
func (l *livenessCheck) left(found *history.Op, calls []*history.Op) bool {
	last := time.Duration(0)
	for _, op := range calls {
		if last = max(last, op.Call); l.disturbed.meets(op.Call, op.Return) {
			return true
		}
	}
	return l.forgotten(found.Key, last, found.Call) != nil
}

// patientCall is the shortest time after which a library gives up to wait for a site: what it asked for may then come
// about without its knowledge.
const patientCall = 20 * time.Millisecond

func (l *livenessCheck) quick(op *history.Op) bool { return op.Latency() < patientCall }

// trace is the evidence of a key that was found: who asked for it, who gave it back, where it was.
func (l *livenessCheck) trace(op *history.Op, o *owner) []history.Op {
	var list []history.Op
	if o.hold != nil {
		list = append(list, *l.acquire(o.hold))
		if r := o.hold.Release; r >= 0 {
			list = append(list, l.Ops[r])
		}
	} else if o.refused > 0 {
		list = append(list, l.Ops[o.refused-1])
	}
	return append(list, *op)
}
