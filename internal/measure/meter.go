// Package measure computes the measurements of a run from its operations, while the run is in progress. It also makes
// snapshots for dashboards. Its memory grows with the number of workers and pages, but not with the length of the
// run. It does not talk to servers, and stores nothing.
package measure

import (
	"io"
	"time"

	"hammerlock/history"
	"hammerlock/results"
)

// Meter computes the measurements of a run. A single goroutine passes it each operation, in the order in which the
// operations returned.
type Meter struct {
	from, to time.Duration // visits that were due in this period are measured
	excludes bool          // the lock claims mutual exclusion
	open     bool          // the load is an open loop
	finite   bool          // the load is a fixed number of visits
	called   int           // number of workers that visit in every phase; the others pause in some phases
	spans    []*Meter      // for each phase, a meter of its own
	begun    bool          // for the meter of a phase: it has observed an operation
	left     int64         // number of visits that were due in the measurement, but never began
	firstDue time.Duration // earliest due time of a measured visit; Forever = no measured visit has ended
	lastEnd  time.Duration // latest end of a measured visit

	acquire, response, hold, release, handoff, tries *histogram

	waits    *waits     // all waits for the lock, with or without a grant
	answers  *waits     // response times of measured visits, including failed ones
	late     *histogram // open loop: how late visits begin although a worker was free
	interval interval

	// Stores may only be read between two calls of Observe, or after the last.
	Stores  stores
	visits  results.Visits
	warm    int64            // number of successful visits during the warm-up
	errors  map[string]int64 // number of operations that did not succeed, by "kind outcome reason"
	workers []workerMeter
	pages   []pageMeter
	wakes   wakes

	part       history.Op        // buffer for a part of a Visit, which stands for several operations
	holds      []history.Holding // indexed by worker
	outages    *outages          // nil in the meter of a phase
	faults     faultWindows
	stoodAt    time.Duration // start of the longest pause of any process
	stood      time.Duration // length of that pause
	excuses    excuses
	ops        int64
	held       time.Duration // for how long locks were held within the measurement, summed over all pages
	ends       ends
	idleWaited time.Duration // for how long locks were free while a worker waited, summed over all pages
}

// The type stores counts the writes to the counter in the whole run, including the warm-up.
type stores struct {
	Acknowledged int64
	Unknown      int64
	Fenced       int64 // rejected by the counter because of an old fencing token
}

type workerMeter struct {
	waiting bool
	key     int32         // page that the worker waits for
	next    int32         // next worker that waits for the same page; see pageMeter.waiting
	first   time.Duration // call of the first try in the current wait
	last    time.Duration // return of the last try

	finish  int64         // number of counted visits that ended within the measurement
	waits   int64         // number of waits that are over; Finish adds the current one
	waited  time.Duration // total length of these waits
	longest time.Duration
}

// pageMeter measures the hand-offs of one page's lock: the times from a release to the next grant. A release may
// arrive after the grant that it made possible, because operations arrive in the order of their returns.
type pageMeter struct {
	release  time.Duration
	grant    time.Duration
	since    time.Duration // time at which the worker with the grant began to wait
	oldest   time.Duration // earliest first try of all workers that waited for the page at the grant
	waiting  int32         // first worker in a linked list of waiters, plus 1; 0 = the list is empty
	releaser int32
	grantee  int32
	woken    history.Wake // why the worker made its successful try
	released bool         // the release still lacks its grant
	pending  bool         // the grant still lacks its release
}

type Options struct {
	Workers  int
	Callers  int // number of callers, as in history.Header; 0 = all workers are callers
	Keys     int
	From, To time.Duration
	Excludes bool // the lock claims mutual exclusion, without which there are no hand-offs
	// Bears is the longest pause after which a holder is not yet late; 0 = the lock has no leases.
	Bears    time.Duration
	Backoff  time.Duration // mean time between two tries
	OpenLoop bool
	// Finite is true if the load is a fixed number of visits, which usually end before To.
	Finite  bool
	Spans   []Span    // consecutive phases of the run, which are also measured separately
	Log     io.Writer // latency log; its owner checks for write errors; nil = no log
	Started time.Time // date of the time 0, for the log
}

func NewMeter(o Options) *Meter {
	m := &Meter{
		from: o.From, to: o.To, excludes: o.Excludes, open: o.OpenLoop, finite: o.Finite, firstDue: history.Forever,
		acquire: newFine(), response: newFine(), hold: newFine(), release: newFine(), handoff: newFine(),
		tries: newFine(), waits: newWaits(o.From, o.To), answers: newWaits(o.From, o.To), late: newFine(),
		errors:  map[string]int64{},
		workers: make([]workerMeter, o.Workers), pages: make([]pageMeter, o.Keys),
		holds:    make([]history.Holding, o.Workers),
		interval: newInterval(o.From, o.Log, o.Started),
		called:   o.alwaysCalled(), spans: newSpans(o), ends: newEnds(o.From, o.To),
	}
	m.waits.random = newFine()
	m.excuses.bears = o.Bears
	m.outages = newOutages(&o, m.holds)
	return m
}

// Stood returns the start and the length of the longest pause of any process.
func (m *Meter) Stood() (at, stood time.Duration) { return m.stoodAt, m.stood }

// Cut ends the measurement at the given time, if that is earlier than planned.
func (m *Meter) Cut(to time.Duration) {
	m.to = min(m.to, to)
	m.waits.to, m.answers.to = m.to, m.to
	for _, s := range m.spans {
		s.Cut(to)
	}
}

// NeverBegun counts a visit that was due, but still waited for a free worker when the run ended.
func (m *Meter) NeverBegun(due time.Duration) {
	if due >= m.from && due < m.to {
		m.answers.record(due, m.to, false)
		m.left++
	}
	for _, s := range m.spans {
		s.NeverBegun(due)
	}
}

func (m *Meter) Observe(op *history.Op) {
	m.inSpans(op)
	if op.Kind != history.Visit {
		m.observe(op)
		return
	}
	for _, kind := range history.PartsOfVisit {
		m.observe(op.Part(kind, &m.part))
	}
}

// measures tells whether the operation belongs to a visit that was due within the measurement.
func (m *Meter) measures(op *history.Op) bool { return op.Due >= m.from && op.Due < m.to }

func (m *Meter) observe(op *history.Op) {
	m.ops++
	m.excuses.observe(op)
	if op.Outcome != history.OK && !op.Refused() && op.Reason != history.Fenced && op.Kind != history.Incident {
		m.errors[op.Class()]++
	}
	if op.Worker < 0 {
		if m.faults.observe(op); op.Kind == history.Fault && m.outages != nil {
			m.faults[len(m.faults)-1].Held = m.outages.held(op.Return)
		}
		if op.Kind == history.Gap && op.Return-op.Call > m.stood {
			m.stoodAt, m.stood = op.Call, op.Return-op.Call
		}
		return
	}
	if op.Kind == history.Acquire && op.Outermost() {
		m.tried(op)
		return
	}
	h := &m.holds[op.Worker]
	change := h.Observe(op)
	if m.outages != nil {
		m.outages.observe(op, h, change)
	}
	w := &m.workers[op.Worker]
	measured := m.measures(op)
	switch op.Kind {
	case history.Skip:
		if measured {
			m.answers.record(op.Due, op.Return, false)
			m.visits.Skipped++
		}
	case history.Store:
		m.stored(op, measured)
	case history.Load:
		if op.Reason == history.Fenced { // the counter rejected the store of a late holder
			m.Stores.Fenced++
		}
	case history.Release:
		// Two kinds of Release are left out, because they end no hold: a cleanup after an unknown Acquire, and the
		// inner release of a reentrant lock.
		if change == history.GivenBack {
			m.released(op, h, measured)
		}
	case history.End:
		m.ended(op, w, measured)
	}
}

// The method tried counts a try to acquire a lock. Inner tries for a reentrant lock are not counted.
func (m *Meter) tried(op *history.Op) {
	if op.Return == history.Forever {
		return
	}
	w := &m.workers[op.Worker]
	measured := m.measures(op)
	p := &m.pages[op.Key]
	if !w.waiting {
		w.waiting, w.key, w.first = true, op.Key, op.Call
		w.next, p.waiting = p.waiting, op.Worker+1
		if m.outages != nil {
			m.outages.begins(op)
		}
	} else if m.outages != nil && op.Woken == history.Poll {
		m.outages.polls++
		m.outages.pauses += op.Call - w.last
	}
	w.last = op.Return
	if measured {
		m.tries.record(op.Latency())
		m.wakes.try(op.Woken, op.Outcome == history.OK)
	}
	if op.Outcome != history.OK {
		if m.outages != nil {
			m.outages.refused(op)
		}
		return
	}
	m.stopWaiting(op.Worker, w, op.Return, true, measured)
	h := &m.holds[op.Worker]
	if m.outages != nil {
		if gap := m.outages.granted(op, h); gap != nil {
			gap.asked = m.oldest(w.first, p)
		}
	}
	h.Observe(op)
	if m.excludes {
		m.granted(op, w.first, p)
	}
}

// stopWaiting records the end of a wait. A wait that ends after the measurement counts as unfinished at the end of
// the measurement, because fewer workers compete from then on.
func (m *Meter) stopWaiting(worker int32, w *workerMeter, now time.Duration, granted, measured bool) {
	w.waiting = false
	at := &m.pages[w.key].waiting
	for *at != worker+1 {
		at = &m.workers[*at-1].next
	}
	*at = w.next
	if granted && measured {
		m.acquire.record(now - w.first)
		m.interval.record(m.interval.acquire, now, now-w.first)
	}
	if m.outages != nil && !granted {
		m.outages.quits(w.key, w.first, now)
	}
	if seen, in := m.waits.record(w.first, now, granted); in {
		w.waits++
		w.waited += seen
		w.longest = max(w.longest, seen)
	}
}

// granted records a grant. p.pair computes the hand-off as soon as both the grant and the release before it have
// arrived.
func (m *Meter) granted(op *history.Op, since time.Duration, p *pageMeter) {
	p.grant, p.grantee, p.since, p.woken, p.pending = op.Return, op.Worker, since, op.Woken, true
	p.oldest = m.oldest(since, p)
	m.pair(p)
}

// The method oldest returns the earliest first try of all workers that wait for a page. If the argument first is
// earlier, it returns that.
func (m *Meter) oldest(first time.Duration, p *pageMeter) time.Duration {
	for n := p.waiting; n != 0; n = m.workers[n-1].next {
		first = min(first, m.workers[n-1].first)
	}
	return first
}

func (m *Meter) released(op *history.Op, h *history.Holding, measured bool) {
	if op.Return == history.Forever {
		return
	}
	if measured {
		m.release.record(op.Latency())
		m.hold.record(op.Call - h.From)
	}
	m.held += m.within(h.From, op.Call)
	if !m.excludes {
		return
	}
	p := &m.pages[op.Key]
	if p.pending && p.grantee == op.Worker {
		p.pending = false // the release of the hold before was never observed
	}
	p.release, p.releaser, p.released = op.Call, op.Worker, true
	m.pair(p)
}

func (m *Meter) pair(p *pageMeter) {
	if !p.pending || !p.released || p.grant < p.release {
		return
	}
	p.pending, p.released = false, false
	m.idleWaited += m.within(max(p.release, p.oldest), p.grant)
	if p.grantee != p.releaser && p.since < p.release && p.release >= m.from && p.grant <= m.to {
		m.handoff.record(p.grant - p.release)
		m.wakes.handedOff(p.woken, p.grant-p.release)
		m.interval.record(m.interval.handoff, p.grant, p.grant-p.release)
	}
}

func (m *Meter) within(from, to time.Duration) time.Duration {
	return max(min(to, m.to)-max(from, m.from), 0)
}

func (m *Meter) stored(op *history.Op, measured bool) {
	if op.Hold == 0 && measured && op.Return != history.Forever { // a visit to a service, which does its own locking
		m.tries.record(op.Latency())
	}
	switch {
	case op.Outcome == history.OK:
		m.Stores.Acknowledged++
	case op.Outcome == history.Unknown:
		m.Stores.Unknown++
	case op.Reason == history.Fenced:
		m.Stores.Fenced++
	}
}

func (m *Meter) ended(op *history.Op, w *workerMeter, measured bool) {
	if w.waiting {
		m.stopWaiting(op.Worker, w, op.Return, false, measured)
	}
	if op.Outcome == history.OK && op.Return >= m.from {
		m.ends.add(op.Return)
		if op.Return < m.to {
			w.finish++
		}
	}
	if !measured {
		if op.Outcome == history.OK && op.Return < m.from {
			m.warm++
		}
		return
	}
	m.answers.record(op.Due, op.Return, op.Outcome == history.OK)
	m.visits.Begun++
	m.firstDue, m.lastEnd = min(m.firstDue, op.Due), max(m.lastEnd, op.Return)
	if m.open {
		m.late.record(op.Call - op.Until)
	}
	switch {
	case op.Outcome == history.OK:
		m.visits.Done++
		m.response.record(op.Return - op.Due)
		m.interval.record(m.interval.response, op.Return, op.Return-op.Due)
	case op.Outcome == history.Unknown:
		m.visits.Unknown++
	case op.Reason == history.Impatient:
		m.visits.Timeout++
	default:
		m.visits.Failed++
	}
}

// Finish ends the observation. Waits in progress count as unfinished, and the last second is written to the log.
func (m *Meter) Finish() {
	if m.outages != nil {
		m.outages.finish(m.workers, m.to)
	}
	for i := range m.workers {
		if w := &m.workers[i]; w.waiting {
			m.stopWaiting(int32(i), w, m.to, false, false)
		}
	}
	m.interval.flush(m.to + intervalWidth)
	for _, s := range m.spans {
		s.Finish()
	}
}
