package witness

import (
	"strconv"
	"strings"
	"time"

	"hammerlock/history"
)

// swapped handles a GETSET on a lock whose token is the time at which the lease ends. Its reply is the old value. If
// that time is in the past, the client now has the lock. Otherwise the old holder keeps the lock, with the new value.
// swapped returns false if the old value is no such time, or if that time is too close to tell.
func (r *Reader) swapped(l *ledger, d *diff, q *sighting, op history.Op) bool {
	end, ok := r.stamp(d.ended[0])
	h := l.book.owner(d.ended[0])
	if !ok || h == nil || op.Return == history.Forever {
		return false
	}
	switch {
	case end < op.Call:
		gives := op
		gives.TTL = 0
		// the old holder has agreed to that: its lease is over
		r.do(l.book, act{kind: history.Release, server: l.server, token: h.token, hold: h, says: did, op: gives})
		h.stop(op.Return)
		r.do(l.book, act{kind: history.Acquire, server: l.server, q: q, token: d.granted[0], says: did, op: op})
	case end > op.Return:
		op.Outcome, op.Reason = history.Failed, history.Busy
		r.do(l.book, act{kind: history.Acquire, server: l.server, q: q, token: d.granted[0], says: didNot, op: op})
		h.token = d.granted[0]
	default:
		return false
	}
	return true
}

// stamp returns the time that a token stands for, if it is a Unix time from 2002 to 2095, in seconds or milliseconds.
// Otherwise it returns false.
func (r *Reader) stamp(token string) (time.Duration, bool) {
	if token == "" || strings.Trim(token, "0123456789.") != "" { // most tokens need not be parsed
		return 0, false
	}
	n, _ := strconv.ParseFloat(token, 64)
	for unit := time.Second; unit >= time.Millisecond; unit /= 1000 {
		if at := n * float64(unit); at > 1e18 && at < 4e18 {
			return time.Duration(int64(at) - r.o.Epoch.UnixNano()), true
		}
	}
	return 0, false
}
