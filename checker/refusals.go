package checker

import (
	"cmp"
	"slices"
	"time"

	"hammerlock/history"
)

// refusedFor returns the index in Ops of a try that was refused because of hold i: no other hold can have been
// the reason. The try was called after the moment `since` and answered before the moment `by`. It returns -1
// if none exists.
func (r *ruler) refusedFor(i *hold, since, by time.Duration) int32 {
	// a lock with a queue also refuses waiters that are not next
	if r.c.Sites > 1 || i.Permits > 0 || i.Outcome != history.OK || r.c.Claims.Ordered || r.c.Claims.Writers {
		return -1
	}
	const most = 8 // one try is enough, so only the latest are examined
	list := r.c.refusalsOf(i.Key)
	at, _ := slices.BinarySearchFunc(list, by, func(n int32, t time.Duration) int {
		return cmp.Compare(r.c.Ops[n].Call, t)
	})
	for _, n := range slices.Backward(list[max(at-most, 0):at]) {
		op := &r.c.Ops[n]
		slack := r.c.slack(i.Process, op.Process)
		if op.Call <= plus(max(since, i.Return), slack) {
			break
		}
		if plus(op.Return, slack) < by && op.Worker != i.Worker && !r.otherwise(i, op, by) {
			return n
		}
	}
	return -1
}

// otherwise reports whether a hold other than i may be the reason for a refusal. A hold whose lease lasts beyond the
// moment `by`, the time of a later grant, is not the reason: it would have prevented that grant.
func (r *ruler) otherwise(i *hold, refused *history.Op, by time.Duration) bool {
	holds := r.c.holdsOf(i.Key)
	at, _ := slices.BinarySearchFunc(holds, refused.Return, func(n int32, t time.Duration) int {
		return cmp.Compare(r.c.holds[n].Call, t)
	})
	for at--; at >= 0 && plus(r.c.holds[holds[at]].Call, r.c.lease) > refused.Call; at-- {
		k := &r.c.holds[holds[at]]
		over := (k.ending == returned || k.ending == gone) && k.releaseReturn < refused.Call
		if keeps := k.ending == endless && r.assured(k) > by; k != i && !over && !keeps {
			return true
		}
	}
	return false
}

// refusalsOf lists the tries for a page that were refused as busy, sorted by call.
func (c *Case) refusalsOf(key int32) []int32 {
	if c.refusals == nil {
		sizes := make([]int32, c.keys+1)
		busy := func(op *history.Op) bool {
			return op.Kind == history.Acquire && op.Outcome == history.Failed && op.Reason == history.Busy &&
				op.Worker >= 0
		}
		for n := range c.Ops {
			if op := &c.Ops[n]; busy(op) {
				sizes[op.Key+1]++
			}
		}
		c.refusals = room[int32](&c.space, sizes)
		for n := range c.Ops {
			if op := &c.Ops[n]; busy(op) {
				c.refusals[op.Key+1] = append(c.refusals[op.Key+1], int32(n))
			}
		}
		for _, list := range c.refusals {
			slices.SortFunc(list, c.byCalls)
		}
	}
	return c.refusals[key+1]
}
