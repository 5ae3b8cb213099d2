package checker

import (
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// owner is what the history says about a token that was found after the run.
type owner struct {
	hold    *hold
	refused int32 // index in Ops, plus one, of a refused Acquire with this token
	sites   int   // number of sites on which the token was found

	asked    time.Duration // longest lease that refused tries had requested
	overlong bool          // the token was seen with a longer TTL than any lease
}

// leaks judges keys that were found after the run, and keys seen during the run with a longer TTL than any lease. It
// returns false if no key was found after the run.
func (l *livenessCheck) leaks() bool {
	owners := map[uint64]*owner{}
	scanned := false
	for _, i := range l.events {
		op := &l.Ops[i]
		found := op.Kind == history.Found && op.Outcome != history.Failed
		// the key of a semaphore has the number of free permits, and no token
		if l.Claims.Permits > 0 || !found && !l.overlong(op) {
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
			o.overlong = true // blame the key once, although it is seen again and again
			l.outlives(op, o)
		}
	}
	return scanned
}

// overlong tells whether a key was seen during the run with a longer TTL than any lease.
func (l *livenessCheck) overlong(op *history.Op) bool {
	return op.Kind == history.Sight && op.Outcome != history.Failed && op.Until-op.Return > l.lease && l.ttl > 0
}

// outlives blames a key with a longer TTL than any lease, unless a clock explains it.
func (l *livenessCheck) outlives(op *history.Op, o *owner) {
	switch {
	case op.Until-op.Return <= l.longest(o.asked):
		return // a refused try had requested this long lease
	case op.Until == history.Forever && (!l.Claims.Expires || o.hold == nil || op.Call < o.hold.Return):
		return // the key may exist while the lock is free, or the lock was not granted yet
	}
	trace, since := l.trace(op, o), time.Duration(0)
	if len(trace) > 1 {
		since = trace[0].Call // otherwise it is unknown who wrote the key
	}
	if l.stretched(since, op.Return) != nil {
		l.misses["over-life"]++
		return
	}
	l.stays(history.TTLTooLong, op, o,
		fmt.Sprintf("the key of page %d was on node %d at %s and expires at %s, later than any lease of at most %s",
			op.Key, op.Value, clock(op.Call), clock(op.Until), human.Duration(l.ttl)))
}

// found judges one key that was found after the run. A key that will expire is counted but not blamed in three cases.
// First, no call that had certainly returned shows that the key should be gone. Second, a disturbance may have left it.
// Third, it is on no majority of the sites, and the lock may have given up a slow site or does not claim to clean up.
func (l *livenessCheck) found(op *history.Op, o *owner) {
	where := fmt.Sprintf("the key of page %d was on node %d at %s", op.Key, op.Value, clock(op.Call))
	switch {
	case op.Until == history.Forever:
		l.stays(history.Leak, op, o, where+" and never expires")
		return
	case op.Until <= op.Call:
		return // it has expired and was not deleted yet
	case op.Until-op.Return > l.lease && l.ttl > 0:
		l.outlives(op, o)
		return
	}
	cause, quick, last := "", false, op
	var calls []*history.Op // calls after which nothing should be left
	if o.hold != nil {
		// a re-entry without an answer may have taken effect after the release
		late := func(i int32) bool { return l.Ops[i].Outcome == history.Unknown }
		if r := o.hold.Release; r >= 0 && l.Ops[r].Outcome == history.OK &&
			!slices.ContainsFunc(l.reenters(o.hold), late) {
			cause, last, calls = history.Leak, &l.Ops[r], []*history.Op{l.acquire(o.hold), &l.Ops[r]}
			for _, i := range l.extends(o.hold) {
				calls = append(calls, &l.Ops[i])
			}
			quick = l.quick(calls[0]) && l.quick(calls[1])
			where += fmt.Sprintf(", though %s was told at %s that hold %s is released", who(o.hold.Worker),
				clock(l.Ops[r].Return), l.acquire(o.hold).ID)
		}
	} else if o.refused > 0 {
		try := &l.Ops[o.refused-1]
		cause, last, calls, quick = l.phantom(try), try, []*history.Op{try}, l.quick(try)
		where += fmt.Sprintf(", though %s was told at %s that it was not granted the lock", who(try.Worker),
			clock(try.Return))
	}
	if 2*o.sites <= l.Sites && cause != "" {
		cause = history.Leftover
	}
	switch {
	case cause == "" || op.Call < plus(last.Return, l.slack(last.Process, op.Process)):
		l.misses["found, and to expire"]++
	case l.left(op, calls):
		l.misses["left behind around a fault"]++
	case cause == history.Leftover && !(quick && l.Claims.Cleans):
		l.misses["left on a minority of the sites"]++
	default:
		l.stays(cause, op, o, where)
	}
}

// stays blames a leftover key in two cases: the lock claims to clean up, or other workers were refused because of the
// key. A lock that does not claim it may keep keys while it is free.
func (l *livenessCheck) stays(cause string, op *history.Op, o *owner, story string) {
	if l.Claims.Cleans {
		l.accuse(cause, l.trace(op, o), story)
		return
	}
	try := l.barredBy(op, o)
	switch {
	case try != nil:
	case o.hold != nil && o.hold.Release < 0 && o.hold.Crashed == history.Forever:
		l.misses["stays, but its holder may live"]++
		return
	default:
		l.misses["stays, and refuses no worker"]++
		return
	}
	l.accuse(cause, append(l.trace(op, o), *try), fmt.Sprintf(
		"%s; %s was refused at %s, when no worker can have had the lock", story, who(try.Worker), clock(try.Return)))
}

// left tells whether a disturbance may have left a key: during the Acquire, an extension or the release of its hold, or
// because servers forgot the release.
func (l *livenessCheck) left(found *history.Op, calls []*history.Op) bool {
	last := time.Duration(0)
	for _, op := range calls {
		if last = max(last, op.Call); l.disturbed.meets(op.Call, op.Return) {
			return true
		}
	}
	return l.forgotten(found.Key, last, found.Call) != nil
}

func (l *livenessCheck) quick(op *history.Op) bool { return op.Latency() < patientCall }

// trace is the evidence about a key: the Acquire and release of its hold, or the refused try, and where the key
// was seen.
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

// barredBy returns a try that was refused because of a key that an earlier hold or try had left. No worker can have
// held the lock at that time. It returns nil if there is no such try.
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
