package checker

import (
	"cmp"
	"math"
	"slices"
	"time"

	"hammerlock/history"
)

// apart is the largest number of periods that can be chosen so that no two overlap.
func apart(list []period) (n int64) {
	slices.SortFunc(list, func(a, b period) int { return cmp.Compare(a.to, b.to) })
	last := time.Duration(math.MinInt64)
	for _, p := range list {
		if p.from >= last {
			n, last = n+1, p.to
		}
	}
	return n
}

// hitch tells whether a window is a short pause of a process, which is frequent on a busy machine.
func (c *Case) hitch(w *window) bool {
	return c.Ops[w.op].Kind == history.Gap && w.to-w.from < Margin(c.lease)
}

// disturb computes the times in which no prompt grant can be expected:
//   - while servers do not answer, and while they recover;
//   - after servers lost keys, until the leases have ended that no worker will release;
//   - for one lease longer in three cases: a minority of sites may have granted a lock that no worker got, a dead
//     waiter may be in a queue, or a message may be lost;
//   - while the lock may belong to a killed worker whose last records were not sent.
//
// Other trouble of a worker ends with its hold. Short pauses are collected in c.hitches, and are only subtracted from
// the time that is judged.
func (c *Case) disturb() {
	var disturbed, places, hitches []period
	for i := range c.windows {
		w := &c.windows[i]
		if c.hitch(w) {
			hitches = append(hitches, w.period)
			continue
		}
		e, felt, to := w.effect, -1*time.Nanosecond, w.to
		if !w.fault && to == history.Forever {
			to = c.servedAgain(c.outage(w.from))
		}
		if e.StopsService() {
			if felt = c.recovery(); !w.fault && c.Bounds.Recovery == 0 && to != history.Forever {
				felt = min(felt, c.servedAgain(to)-to)
			}
		}
		late := e.Hit(history.Links) || e.Hit(history.Clients)
		if late {
			felt = max(felt, 0)
		}
		if e.BreaksPromises() && (w.fault || len(c.holds) > 0 && c.holds[c.byCall[0]].Call <= to) || c.lingers &&
			late || e.StopsService() && c.Sites > 1 {
			felt = max(felt, 0) + c.lease
		}
		if felt < 0 {
			continue
		}
		// in terms of a worker's clock
		p := period{minus(w.from, c.anySlack()), plus(plus(to, felt), c.anySlack())}
		if disturbed = append(disturbed, p); to >= c.begin { // before the first request no worker had a place
			places = append(places, p)
		}
	}
	c.eventful = newSpans(slices.Clone(disturbed))
	for _, p := range c.unsent() {
		disturbed, places = append(disturbed, p), append(places, p)
	}
	c.disturbed, c.displaced, c.hitches = newSpans(disturbed), newSpans(places), newSpans(hitches)
}

// servedAgain looks at the first grant of each page after a given moment, and returns the latest of these times. It
// returns Forever if no page was granted after the moment, or if there are many pages.
func (c *Case) servedAgain(after time.Duration) time.Duration {
	if len(c.byKey) > fewKeys {
		return history.Forever
	}
	at := time.Duration(-1)
	for _, holds := range c.byKey {
		n, _ := slices.BinarySearchFunc(holds, after, func(i int32, t time.Duration) int {
			return cmp.Compare(c.holds[i].Call, t)
		})
		for ; n < len(holds) && c.holds[holds[n]].Outcome != history.OK; n++ {
		}
		if n < len(holds) {
			at = max(at, c.holds[holds[n]].Return)
		}
	}
	if at < 0 {
		return history.Forever
	}
	return at
}
