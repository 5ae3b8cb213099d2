package checker

import (
	"cmp"
	"slices"
	"time"

	"hammerlock/history"
)

// row has operations of one process on one page, in the order of their returns. An operation is left out if its value
// is not greater than all values before it.
type row struct {
	process int16
	ops     []stamp
	most    int64 // value of the last operation
}

// inRealTime runs the function `called` for every operation i that the function `pick` selects. The argument best is
// the operation with the greatest value among those that had certainly returned before the call of i; -1 if none
// exists. Negative values do not count. Among equal values, best is from the process whose first operation came first.
// Rows are sorted by their greatest values, so the search ends after few rows.
func (c *Case) inRealTime(pick func(*history.Op) bool, value func(i int32) int64, called func(i, best int32)) {
	rows := make([][]*row, c.keys)
	for n := range c.Ops {
		op, i := &c.Ops[n], int32(n)
		if op.Key < 0 || !pick(op) {
			continue
		}
		best, most, first := int32(-1), int64(-1), int32(0)
		for _, r := range rows[op.Key] {
			if r.most < most {
				break
			}
			if n := r.before(op.Call - c.slack(r.process, op.Process)); n > 0 {
				last, begin := r.ops[n-1].index, r.ops[0].index
				if v := value(last); v > most || v == most && begin < first {
					best, most, first = last, v, begin
				}
			}
		}
		called(i, best)
		if v := value(i); v >= 0 && op.Return != history.Forever {
			rows[op.Key] = grow(&c.scratch, rows[op.Key], op.Process, stamp{op.Return, i}, v)
		}
	}
}

// grow adds an operation to the row of its process. It moves that row to its place among the rows of the page, which
// are sorted by their greatest values.
func grow(space *history.Space, page []*row, process int16, s stamp, value int64) []*row {
	at := slices.IndexFunc(page, func(r *row) bool { return r.process == process })
	if at < 0 {
		at = len(page)
		page = append(page, &row{process: process, most: -1})
	}
	r := page[at]
	if value <= r.most {
		return page
	}
	r.ops, r.most = history.Append(space, r.ops, s), value
	for ; at > 0 && page[at-1].most < value; at-- {
		page[at] = page[at-1]
	}
	page[at] = r
	return page
}

// before counts the operations of a row that returned before a time. It searches from the end, in doubling steps,
// because most times are near the end.
func (r *row) before(t time.Duration) int {
	high, step := len(r.ops), 1
	for high-step >= 0 && r.ops[high-step].at >= t {
		high -= step
		step *= 2
	}
	low := max(high-step, 0)
	n, _ := slices.BinarySearchFunc(r.ops[low:high], t, func(s stamp, t time.Duration) int {
		return cmp.Compare(s.at, t)
	})
	return low + n
}

// before tells whether a return in one process was certainly before a call in another.
func (c *Case) before(ret, call time.Duration, a, b int16) bool {
	return ret != history.Forever && ret < call-c.slack(a, b)
}

// longest returns T2, the longest time for which a server may keep a lease. It does not ask whether the lock claims
// that leases end.
func (c *Case) longest(ttl time.Duration) time.Duration {
	return plus(plus(ttl, c.rules.Drift(ttl)), c.Bounds.Linger)
}

// errorOf is the largest error of a process's clock. Two clocks differ by at most the sum of their errors.
func (c *Case) errorOf(process int16) time.Duration {
	return (&ruler{c: c, scope: everywhere}).half(&hold{Process: process})
}

// wide is the time that a period of a process may have lasted on a clock without error, at most.
func (c *Case) wide(process int16, p period) period {
	e := c.errorOf(process)
	return period{minus(p.from, e), plus(p.to, e)}
}

// narrow is the time that a period of a process certainly lasted on a clock without error.
func (c *Case) narrow(process int16, p period) period {
	e := c.errorOf(process)
	return period{plus(p.from, e), minus(p.to, e)}
}

// stood is how long a process may have been paused between two moments. If pauses are not recorded, the longest
// silence of its workers may have been a pause.
func (c *Case) stood(process int16, from, to time.Duration) (longest time.Duration) {
	if c.Bounds.Gap > 0 {
		return c.stillFor(process, from, to)
	}
	if c.silences == nil {
		c.silences = c.quiet()
	}
	for _, p := range c.silences[process].of(period{from, to}) {
		longest = max(longest, min(p.to, to)-max(p.from, from))
	}
	return max(longest, c.stillFor(process, from, to))
}

// quiet lists, for each process, the times in which no worker made a call or got an answer.
func (c *Case) quiet() []spans {
	times := make([][]time.Duration, c.processes)
	for i := range c.Ops {
		if op := &c.Ops[i]; op.Worker >= 0 {
			times[op.Process] = append(times[op.Process], op.Call, op.Return)
		}
	}
	all := make([]spans, c.processes)
	for process, list := range times {
		list = append(list, history.Forever)
		slices.Sort(list)
		last := time.Duration(0)
		for _, at := range list {
			if at-last > aMoment {
				all[process] = append(all[process], period{last, at})
			}
			last = at
		}
	}
	return all
}

// wait describes how a visit waits for a lock, over all its tries.
type wait struct {
	start time.Duration // call of the first try
	// earliest time at which the waiter may have been in the queue: start, or the call of an earlier unanswered try
	stood  time.Duration
	stop   time.Duration // return of the grant, or the time at which the visit gave up
	asked  time.Duration // call of the last try
	denied time.Duration // call of the last try that was refused as busy
	// the waiter has certainly kept its place in the queue since this return of a refusal; Forever = not certain
	queued time.Duration
	again  time.Duration // return of the first refusal after the last disturbance: the waiter is in the queue (again)
	last   time.Duration // return of the last try
	hold   int32         // index of the hold that was granted; -1 = none
	key    int32
	worker int32

	process int16
	permits uint16 // 0 = exclusive
	lapsed  bool   // it may have lost its place in the queue, and goes on as another wait: see places
}

// manyWaits counts the waits of each key, so that lists of waits can be made in the right length. A list that grows
// takes twice the memory.
func (c *Case) manyWaits() []int32 {
	if c.waited == nil {
		c.waited = make([]int32, c.keys)
		c.waits(func(w *wait) {
			if w.key >= 0 {
				c.waited[w.key]++
			}
		})
	}
	return c.waited
}

// waits runs the function emit for every wait, in the order in which the waits stop. Waits that no End operation ends
// come last. A history without End operations does not say which tries belong together, so each try is a wait.
func (c *Case) waits(emit func(*wait)) { c.places(emit, func(*wait) {}) }

// places does the work of waits. It runs the function lapse for every wait that may have lost its place in the queue,
// as the wait was until then. A call that ends in an error shows that its caller still waited.
func (c *Case) places(emit, lapse func(*wait)) {
	open := slices.Repeat([]wait{{worker: -1}}, c.workers)
	unanswered := map[[2]int32]time.Duration{} // by worker and key: call of the first try without an answer
	stop := func(w *wait, at time.Duration) {
		if w.worker >= 0 {
			w.stop = at
			emit(w)
			w.worker = -1
		}
	}
	for i := range c.Ops {
		op := &c.Ops[i]
		if op.Worker < 0 {
			continue
		}
		w := &open[op.Worker]
		switch {
		case op.Kind == history.End && w.worker >= 0 && w.key == op.Key:
			stop(w, op.Return)
		case op.Kind == history.Crash && c.Partial != "":
			stop(w, min(op.Call, w.last)) // a later grant may be missing
		case op.Kind == history.Crash:
			stop(w, op.Call)
		case op.Kind == history.Acquire && op.Outermost():
			if w.worker >= 0 && w.key != op.Key {
				stop(w, w.last)
			}
			before := *w
			w.try(op, c.rules.Least(op.TTL))
			if before.worker >= 0 && w.queued > before.queued && op.Call > before.last+1 {
				if op.Return-before.asked <= c.rules.Least(op.TTL) {
					before.asked = op.Call
				}
				before.stop, before.lapsed = before.asked, true
				lapse(&before)
			}
			of := [2]int32{op.Worker, op.Key}
			since, ok := unanswered[of]
			if ok { // the unanswered try may take effect at any time after its call
				w.stood = min(w.stood, since)
			} else if op.Outcome == history.Unknown {
				unanswered[of] = op.Call
			}
			w.standing(op, c.displaced)
			if op.Outcome == history.OK {
				w.hold = c.holdAt(op.ID)
			}
			if w.hold >= 0 || !c.visits && op.Return != history.Forever {
				stop(w, op.Return)
			}
		}
	}
	for i := range open {
		stop(&open[i], c.end())
	}
}

// try adds a try to a wait. A waiter may lose its place in the queue if a try does not end in a refusal. It may also
// lose the place if it tries nothing for a lease. At worst, the lock hears of one try at its call and of the next try
// at its return.
func (w *wait) try(op *history.Op, lease time.Duration) {
	if w.worker < 0 {
		*w = wait{start: op.Call, stood: op.Call, queued: history.Forever, again: history.Forever, asked: op.Call,
			hold: -1, key: op.Key, worker: op.Worker, process: op.Process, permits: op.Permits}
	}
	if op.Return-w.asked > lease {
		w.queued = history.Forever
	}
	// part of the same call, see Lane.Split: the refused part may have had no place in the queue
	if op.Call <= w.last+1 {
		for _, since := range []*time.Duration{&w.queued, &w.again} {
			if *since == w.last {
				*since = history.Forever
			}
		}
	}
	w.asked, w.last = op.Call, op.Return
	switch {
	case op.Outcome == history.OK:
	case op.Outcome != history.Failed || op.Reason != history.Busy:
		w.queued = history.Forever
	default:
		w.denied, w.queued = op.Call, min(w.queued, op.Return)
	}
}

// standing notes the time from which the waiter has certainly been in the queue. In a disturbance the lock may forget
// the waiter until its next refusal.
func (w *wait) standing(op *history.Op, disturbed spans) {
	if w.queued == history.Forever || w.again == history.Forever || w.again < w.queued {
		w.again = w.queued
	}
	switch refused := op.Outcome == history.Failed; {
	case w.again == history.Forever:
	case refused && disturbed.meets(w.again, op.Return):
		w.again = op.Return
	case !refused && disturbed.meets(w.again, op.Call):
		w.again = history.Forever
	}
}

// asked is the longest lease that was requested, or that the lock has by default.
func (c *Case) asked() (ttl time.Duration) {
	for i := range c.holds {
		h := &c.holds[i]
		since := h.Call
		ttl = max(ttl, h.TTL)
		for _, x := range c.extends(h) {
			if op := &c.Ops[x]; op.Outcome != history.Failed && op.Until != 0 {
				since, ttl = op.Call, max(ttl, op.TTL)
			}
		}
		if h.Until != history.Forever {
			ttl = max(ttl, h.Until-since)
		}
	}
	return ttl
}
