package measure

import (
	"slices"
	"time"

	"hammerlock/history"
)

// outages finds periods in which workers asked for the lock of a page, and none of them got it.
//
// A gap is the time from the end of a hold to the next grant of the same page. Within the gap, the page is
// unavailable from the first request of a waiting worker. A short gap is a normal hand-off, not an outage.
//
// A release, or the first try of a waiter, may arrive after the grant that ends the gap. So gaps are kept for some
// time, in which they can be corrected.
type outages struct {
	least    time.Duration
	backoff  time.Duration
	polls    int64         // number of tries that waiters made after a pause
	pauses   time.Duration // total length of the pauses
	pages    []pageGaps
	holds    []history.Holding // current hold of each worker; the slice is shared with the meter
	gaps     []gap             // gaps that may be outages, ordered by their ends
	keys     []int32           // for each element of gaps: its page; -1 = the gap was found to be too short
	quitted  []quitted         // waits that ended without a grant, ordered by their ends
	failed   map[int32]map[failure]int64
	found    []gap // gaps that are outages and can no longer change
	asked    bool  // at least one worker asked for a lock
	finished bool
}

// keptGaps limits the gaps (and the waits) that may still be corrected. keptFound limits the outages.
const (
	keptGaps  = 4096
	keptFound = 4096
)

// leastOutage returns the length of the shortest outage. The argument backoff is the mean pause of workers between
// two tries.
func leastOutage(backoff time.Duration) time.Duration { return max(100*time.Millisecond, 10*backoff) }

// handOff returns the length from which a gap is an outage instead of a hand-off. It is greater for a lock whose own
// pauses between tries are longer than those of the workers.
func (o *outages) handOff() time.Duration {
	if o.polls == 0 || o.pauses/time.Duration(o.polls) < 2*o.backoff {
		return o.least
	}
	return max(o.least, leastOutage(o.pauses/time.Duration(o.polls)))
}

type pageGaps struct {
	free    time.Duration // end of the last observed hold
	ends    time.Duration // end of the latest gap
	busy    time.Duration // return of the last reply "busy", which means that another worker has the lock
	since   time.Duration // start of the current series of "busy" replies, which are at most a hand-off apart
	holders int32         // number of holds in progress, as far as known
	given   time.Duration // when the release of the last hold returned; 0 = it did not succeed
	// again is the return of the first "busy" reply to a request that was sent after that release; 0 = none.
	again  time.Duration
	served time.Duration // call of the latest successful try
}

type gap struct {
	key int32
	// again is the time at which servers replied that the released lock is held again; 0 = they did not.
	again    time.Duration
	open     bool          // the gap has not ended
	served   time.Duration // call of the previous successful try; 0 = none
	from, to time.Duration // the gap; in its final form, only the part in which the page was unavailable
	asked    time.Duration // earliest request of a worker that was not served in the gap
	// answered is the start of the "busy" replies that lasted until the end of the gap. Without such replies, it is
	// the end of the gap.
	answered time.Duration
	failed   map[failure]int64
}

type quitted struct {
	key        int32
	first, end time.Duration
}

type failure struct {
	kind    history.Kind
	outcome history.Outcome
	reason  history.Reason
}

func (f failure) String() string {
	return f.kind.String() + " " + f.outcome.String() + " " + f.reason.String()
}

func newOutages(o *Options, holds []history.Holding) *outages {
	return &outages{least: leastOutage(o.Backoff), backoff: o.Backoff, pages: make([]pageGaps, o.Keys), holds: holds,
		failed: map[int32]map[failure]int64{}}
}

// observe records an operation other than a try, and what it changes about the worker's hold. A hold also ends when
// its worker learns that the lock is lost.
func (o *outages) observe(op *history.Op, h *history.Holding, change history.Change) {
	switch {
	case op.Kind == history.Release:
		o.fails(op, op.Key)
	case op.Kind == history.Extend:
		o.fails(op, h.Key) // the renewal by a background goroutine does not name its page
	}
	switch {
	case change == history.Told && h.Lost == op.Return:
		o.end(h, op.Return, 0)
	case h.Lost != history.Forever: // the hold ended earlier
	case change == history.GivenBack:
		given := op.Return
		if op.Outcome != history.OK {
			given = 0
		}
		o.end(h, op.Call, given)
	case change == history.Died:
		o.end(h, op.Call, 0)
	case change == history.Left:
		o.end(h, op.Return, 0)
	}
}

// The method fails counts a failed call. It does not count a refusal, which only means that another worker has the
// lock.
func (o *outages) fails(op *history.Op, key int32) {
	if op.Outcome == history.OK || op.Reason == history.Busy {
		return
	}
	if o.failed[key] == nil {
		o.failed[key] = map[failure]int64{}
	}
	o.failed[key][failure{op.Kind, op.Outcome, op.Reason}]++
}

// goesOn tells whether a worker has a hold whose end is not known.
func goesOn(h *history.Holding) bool { return h.ID != 0 && h.Lost == history.Forever }

// The method begins records the first try of a wait. Since operations arrive late, the try may belong to gaps that
// have already ended.
func (o *outages) begins(op *history.Op) {
	o.asked = true
	if op.Call >= o.pages[op.Key].ends {
		return
	}
	for i, key := range o.keys {
		if key == op.Key && op.Call < o.gaps[i].to {
			o.gaps[i].asked = min(o.gaps[i].asked, op.Call)
		}
	}
}

func (o *outages) refused(op *history.Op) {
	if op.Reason != history.Busy {
		o.fails(op, op.Key)
		return
	}
	p := &o.pages[op.Key]
	if op.Return-p.busy >= o.handOff() {
		p.since = op.Return
	}
	if p.given > 0 && p.again == 0 && op.Call > p.given {
		p.again = op.Return
	}
	p.busy = op.Return
}

// The method quits records a wait that ended without a grant.
func (o *outages) quits(key int32, first, end time.Duration) {
	if len(o.quitted) == keptGaps {
		o.quitted = append(o.quitted[:0], o.quitted[keptGaps/2:]...)
	}
	o.quitted = append(o.quitted, quitted{key, first, end})
}

// granted records a grant. If the grant ended a long gap, it returns the gap, whose first request the caller must
// set; otherwise nil.
func (o *outages) granted(op *history.Op, h *history.Holding) (ended *gap) {
	p := &o.pages[op.Key]
	if goesOn(h) { // the worker has an older hold, which ends now
		o.end(h, op.Return, 0)
	}
	if op.Return-p.free >= o.least {
		if len(o.gaps) == keptGaps {
			o.settle(keptGaps / 2)
		}
		g := gap{key: op.Key, served: p.served, from: p.free, to: op.Return, failed: o.failed[op.Key]}
		if p.again < op.Call { // a later reply "busy" may be about the hold that begins now
			g.again = p.again
		}
		if g.answered = p.answered(g.to, o.handOff(), op.Woken == history.LeaseEnd); g.answered >= op.Call {
			g.answered = g.to // the "busy" replies may be about the hold that begins now
		}
		o.gaps, o.keys, p.ends = append(o.gaps, g), append(o.keys, g.key), op.Return
		ended = &o.gaps[len(o.gaps)-1]
	}
	if len(o.failed) > 0 {
		delete(o.failed, op.Key)
	}
	p.holders++
	p.served = max(p.served, op.Call)
	return ended
}

// answered looks for an unbroken series of "busy" replies up to a time, the argument until. It returns the start of
// the series or, without such a series, that time. A silence of the length least breaks a series. The argument knows
// is true for a waiter that knows the end of the lease. Such a waiter sends no requests before that end, so its
// silence breaks nothing.
func (p *pageGaps) answered(until, least time.Duration, knows bool) time.Duration {
	if p.busy > 0 && (until-p.busy < least || knows) {
		return p.since
	}
	return until
}

// The method end records that a worker no longer relies on its hold, or should not. The argument given is the time at
// which the release succeeded; 0 = it did not succeed.
func (o *outages) end(h *history.Holding, at, given time.Duration) {
	p := &o.pages[h.Key]
	at = max(min(at, h.Until), h.From)
	p.holders--
	if at >= p.free {
		p.free, p.given, p.again = at, given, 0
	}
	if p.ends <= h.From {
		return
	}
	for i, key := range o.keys {
		g := &o.gaps[i]
		if key != h.Key || g.to <= h.From || at <= g.from {
			continue
		}
		if g.from, g.again = at, 0; g.to-at < o.least {
			o.keys[i] = -1
		}
	}
	for n := len(o.keys) - 1; n >= 0 && o.keys[n] < 0; n-- {
		o.keys, o.gaps = o.keys[:n], o.gaps[:n]
	}
}

// held returns the number of holds that are in progress at the given time.
func (o *outages) held(now time.Duration) (n int) {
	for i := range o.holds {
		if h := &o.holds[i]; h.ID != 0 && h.Believed() > now {
			n++
		}
	}
	return n
}

// settle makes the first n gaps final. It keeps those that are outages, and drops the others.
func (o *outages) settle(n int) {
	for i, g := range o.gaps[:n] {
		if o.keys[i] >= 0 && o.decide(&g) {
			o.found = append(o.found, g)
		}
	}
	o.gaps, o.keys = append(o.gaps[:0], o.gaps[n:]...), append(o.keys[:0], o.keys[n:]...)
	if n := len(o.found); n > keptFound { // drop the shorter half
		slices.SortFunc(o.found, func(a, b gap) int { return int(b.to - b.from - (a.to - a.from)) })
		o.found = o.found[:keptFound/2]
	}
}

// decide finds the part of a gap in which the page was unavailable. It returns true if that part is long enough to be
// an outage.
func (o *outages) decide(g *gap) bool {
	for i := 0; i < len(o.holds) && o.pages[g.key].holders > 0; i++ { // holds whose end has not arrived
		if h := &o.holds[i]; goesOn(h) && h.Key == g.key && h.From < g.to {
			g.from = max(g.from, min(max(h.Until, h.From), g.to))
		}
	}
	for _, w := range o.quitted {
		if w.key == g.key && w.first < g.to && w.end > g.from {
			g.asked = min(g.asked, w.first)
		}
	}
	g.from = max(g.from, g.asked)
	g.answered = min(max(g.answered, g.from), g.to)
	return g.to-g.from >= o.least
}

// finish makes all gaps final. No operation may follow.
func (o *outages) finish(workers []workerMeter, now time.Duration) {
	o.found, o.gaps, o.keys = o.all(workers, now), nil, nil
	o.finished = true
}

// The method all returns the periods in which a page was unavailable, including those still in progress.
func (o *outages) all(workers []workerMeter, now time.Duration) []gap {
	list := slices.Clone(o.found)
	if o.finished {
		return list
	}
	for i, g := range o.gaps {
		if o.keys[i] >= 0 && o.decide(&g) {
			list = append(list, g)
		}
	}
	return append(list, o.open(workers, now)...)
}

// The method open returns the periods of unavailability that are still in progress.
func (o *outages) open(workers []workerMeter, now time.Duration) (list []gap) {
	unserved := map[int32]time.Duration{} // page -> first request of a worker that waits for it
	for i := range workers {
		if w := &workers[i]; w.waiting {
			first, known := unserved[w.key]
			if !known || w.first < first {
				unserved[w.key] = w.first
			}
		}
	}
	for _, w := range o.quitted {
		if _, known := unserved[w.key]; !known {
			unserved[w.key] = history.Forever
		}
	}
	for key, first := range unserved {
		p := &o.pages[key]
		g := gap{key: key, again: p.again, open: true, served: p.served, from: p.free, to: now, asked: first,
			failed: o.failed[key], answered: p.answered(now, o.handOff(), false)}
		if now > p.free && o.decide(&g) {
			list = append(list, g)
		}
	}
	return list
}
