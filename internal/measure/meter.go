// Package measure measures a run while it goes on, from the operations that it is shown, and makes snapshots of it
// for observers. Its memory depends on the numbers of workers and pages, not on the length of the run. It sends
// nothing to a server and stores nothing.
package measure

import (
	"io"
	"time"

	"hammerlock/history"
	"hammerlock/results"
)

// Meter measures a run while it goes on. It is shown every operation, in the order of returns, by one goroutine.
type Meter struct {
	from, to time.Duration // visits that are due in between are measured
	excludes bool          // the lock claims to have one holder at a time
	open     bool          // the visits are due by a schedule
	called   int           // workers that visit all the time; the others rest at times, as the plan says
	spans    []*Meter      // of parts of the run
	begun    bool          // of a part: it has seen an operation
	left     int64         // visits that were due within the measurement and never begun

	acquire, response, hold, release, handoff, tries *histogram // as results.Latencies has them

	waits    *waits     // as acquire, with the waits without a grant
	answers  *waits     // as response, with the visits that were not counted
	late     *histogram // open loop: from when a visit was due and a worker free to its begin
	interval interval

	// Stores is read by others, between or after observations.
	Stores  stores
	visits  results.Visits
	warm    int64            // visits that went well in the warm-up
	errors  map[string]int64 // operations that were not OK, by kind, outcome and reason
	workers []workerMeter
	pages   []pageMeter
	wakes   wakes

	part       history.Op        // of a Visit
	holds      []history.Holding // by worker
	outages    *outages          // nil for a part of a run
	faults     faultWindows
	stoodAt    time.Duration // when a process was paused for the longest time
	stood      time.Duration // and for how long
	excuses    excuses
	ops        int64
	held       time.Duration // of all pages, within the measurement
	ends       ends
	idleWaited time.Duration // no worker held the page's lock while one waited for it
}

// stores counts the writes of the counter over the whole run, the warm-up included.
type stores struct {
	Acknowledged int64
	Unknown      int64
	Fenced       int64 // refused by the counter's fence
}

type workerMeter struct {
	waiting bool
	key     int32         // of the page that it waits for
	next    int32         // another one who waits for it, as in pageMeter
	first   time.Duration // call of the first try
	last    time.Duration // return of the last one

	finish  int64         // counted visits that ended within the measurement
	waits   int64         // waits begun
	waited  time.Duration // sum of all waits, unfinished ones included
	longest time.Duration
}

// pageMeter pairs a release with the next grant. Operations come in the order of their returns, so a release may
// come after the grant that it made possible.
type pageMeter struct {
	release  time.Duration
	grant    time.Duration
	since    time.Duration // when the grantee's wait began
	oldest   time.Duration // first try of the longest waiting worker at the grant
	waiting  int32         // the first of the workers who wait, counted from 1; the others follow by next; 0 = none
	releaser int32
	grantee  int32
	woken    history.Wake // what made the grantee try
	released bool         // a release waits for its grant
	pending  bool         // a grant waits for the release before it
}

// Options say what a meter is to expect.
type Options struct {
	Workers  int
	Callers  int // see history.Header; 0 = all workers
	Keys     int
	From, To time.Duration
	Excludes bool // the lock claims to exclude: hand-off and idle time mean something
	// Bears is how long a holder may pause without being late; 0 = the lock has no leases.
	Bears    time.Duration
	Backoff  time.Duration // mean time between two tries
	OpenLoop bool
	Spans    []Span    // parts of the run that are measured for themselves, too; one after the other
	Log      io.Writer // takes the latency log; nil if it is not kept. Its errors are its own.
	Started  time.Time // what the times of the log count from
}

// NewMeter makes a meter.
func NewMeter(o Options) *Meter {
	m := &Meter{
		from: o.From, to: o.To, excludes: o.Excludes, open: o.OpenLoop,
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

// Stood is the longest time that a process was paused, and when that began.
func (m *Meter) Stood() (at, stood time.Duration) { return m.stoodAt, m.stood }

// Cut ends the measurement early; visits that are due later are not measured.
func (m *Meter) Cut(to time.Duration) {
	m.to = min(m.to, to)
	m.waits.to, m.answers.to = m.to, m.to
	for _, s := range m.spans {
		s.Cut(to)
	}
}

// NeverBegun takes a visit into account that still waited for a worker when the run ended.
func (m *Meter) NeverBegun(due time.Duration) {
	m.answers.record(due, m.to, false)
	if due >= m.from && due < m.to {
		m.left++
	}
	for _, s := range m.spans {
		s.NeverBegun(due)
	}
}

// Observe takes one operation into account.
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

func (m *Meter) observe(op *history.Op) {
	m.ops++
	m.excuses.observe(op)
	if op.Outcome != history.OK && !op.Refused() && op.Reason != history.Fenced && op.Kind != history.Incident {
		m.errors[op.Kind.String()+" "+op.Outcome.String()+" "+op.Reason.String()]++
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
	measured := op.Due >= m.from && op.Due < m.to
	switch op.Kind {
	case history.Skip:
		m.answers.record(op.Due, op.Return, false)
		if measured {
			m.visits.Skipped++
		}
	case history.Store:
		m.stored(op, measured)
	case history.Load:
		if op.Reason == history.Fenced { // a stale holder does not get as far as its store
			m.Stores.Fenced++
		}
	case history.Release:
		if change == history.GivenBack { // the cleanup after an unknown acquire ends no hold, nor does an inner release
			m.released(op, h, measured)
		}
	case history.End:
		m.ended(op, w, measured)
	}
}

// tried takes in a try for the lock. A re-entry is none: its worker has the lock.
func (m *Meter) tried(op *history.Op) {
	if op.Return == history.Forever {
		return
	}
	w := &m.workers[op.Worker]
	measured := op.Due >= m.from && op.Due < m.to
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

// stopWaiting records a wait. After the end of the measurement fewer workers compete; a wait that ends then is only
// known to have lasted until the end.
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

// granted and released pair up whichever comes second.
func (m *Meter) granted(op *history.Op, since time.Duration, p *pageMeter) {
	p.grant, p.grantee, p.since, p.woken, p.pending = op.Return, op.Worker, since, op.Woken, true
	p.oldest = m.oldest(since, p)
	m.pair(p)
}

// oldest is when the first try was of those who wait for a page, and of one who did.
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
		p.pending = false // the grant of the hold that now ends: the release before it was never seen
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
	if op.Hold == 0 && measured && op.Return != history.Forever { // a request to a service that does its own locking
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
	m.answers.record(op.Due, op.Return, op.Outcome == history.OK)
	if !measured {
		if op.Outcome == history.OK && op.Return < m.from {
			m.warm++
		}
		return
	}
	m.visits.Begun++
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

// Finish ends the observation: waits that are still open are censored, and the last interval is handed on.
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
