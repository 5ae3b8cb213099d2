package results

import (
	"time"

	"hammerlock/history"
)

// Meter measures a run while it goes on. It is shown every operation, in the order of returns, by one goroutine;
// its memory depends on the numbers of workers and pages, not on the length of the run.
type Meter struct {
	from, to time.Duration // visits that are due in between are measured
	excludes bool          // the lock claims to have one holder at a time
	open     bool          // the visits are due by a schedule

	Acquire  *Latency // from the first try to the grant, granted visits only
	Response *Latency // from when the visit was due to its end, counted visits only
	Hold     *Latency // from the grant to the call of the release
	Release  *Latency
	Handoff  *Latency // from the release's call to the grant of another worker that was waiting by then
	Tries    *Latency // each try by itself, granted or not
	Waits    *Waits   // as Acquire, with the waits that came to nothing
	Answers  *Waits   // as Response, with the visits that came to nothing
	Late     *Latency // open loop: from when a visit was due and a worker free to its begin
	interval interval

	Visits  Visits
	Stores  Stores
	Errors  map[string]int64 // operations that did not go well, by kind, outcome and reason
	workers []workerMeter
	pages   []pageMeter
	wakes   [kindsOfWake]wakeMeter

	part       history.Op // of a Visit
	faults     []FaultWindow
	ops        int64
	held       time.Duration // of all pages, within the measurement
	idleWaited time.Duration // nobody held the page's lock while somebody waited for it
}

// Visits counts the visits that were due within the measurement.
type Visits struct {
	Begun   int64 `json:"begun"`
	Done    int64 `json:"done"`    // counted: the store was acknowledged
	Timeout int64 `json:"timeout"` // gave up waiting for the lock
	Failed  int64 `json:"failed"`  // certainly not counted, for another reason
	Unknown int64 `json:"unknown"` // perhaps counted
	Skipped int64 `json:"skipped"` // patience ended before a worker was free
}

// Stores counts the writes of the counter over the whole run, the warm-up included.
type Stores struct {
	Acknowledged int64
	Unknown      int64
	Fenced       int64 // refused by the counter's fence
}

type workerMeter struct {
	waiting bool
	key     int32         // of the page that it waits for
	next    int32         // another one who waits for it, as in pageMeter
	first   time.Duration // call of the first try
	granted time.Duration
	hold    history.ID

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
	waiting  int32         // the first of the workers who wait, counted from 1; the others follow by next; 0 = nobody
	releaser int32
	grantee  int32
	woken    history.Wake // what made the grantee try
	released bool         // a release waits for its grant
	pending  bool         // a grant waits for the release before it
}

// MeterOptions say what a meter is to expect.
type MeterOptions struct {
	Workers  int
	Keys     int
	From, To time.Duration
	Excludes bool // the lock claims to exclude: hand-off and idle time mean something
	OpenLoop bool
	Interval func(tag string, from, to time.Duration, l *Latency)
}

// NewMeter makes a meter.
func NewMeter(o MeterOptions) *Meter {
	return &Meter{
		from: o.From, to: o.To, excludes: o.Excludes, open: o.OpenLoop,
		Acquire: newFine(), Response: newFine(), Hold: newFine(), Release: newFine(), Handoff: newFine(),
		Tries: newFine(), Waits: newWaits(o.From, o.To), Answers: newAnswers(o.From, o.To), Late: newFine(),
		Errors:  map[string]int64{},
		workers: make([]workerMeter, o.Workers), pages: make([]pageMeter, o.Keys),
		interval: newInterval(o),
	}
}

// Cut ends the measurement early; visits that are due later are not measured.
func (m *Meter) Cut(to time.Duration) {
	m.to = min(m.to, to)
	m.Waits.to, m.Answers.to = m.to, m.to
}

// NeverBegun takes a visit into account that still waited for a worker when the run ended.
func (m *Meter) NeverBegun(due time.Duration) { m.Answers.record(due, m.to, false) }

// Observe takes one operation into account.
func (m *Meter) Observe(op *history.Op) {
	if op.Kind == history.Visit {
		for _, kind := range history.PartsOfVisit {
			m.Observe(op.Part(kind, &m.part))
		}
		return
	}
	m.ops++
	if op.Outcome != history.OK && op.Reason != history.Busy && op.Reason != history.Fenced {
		m.Errors[op.Kind.String()+" "+op.Outcome.String()+" "+op.Reason.String()]++
	}
	if op.Worker < 0 {
		m.broken(op)
		return
	}
	w := &m.workers[op.Worker]
	measured := op.Due >= m.from && op.Due < m.to
	switch op.Kind {
	case history.Skip:
		m.skip(op, measured)
	case history.Acquire:
		m.acquire(op, w, measured)
	case history.Store:
		m.store(op)
	case history.Release:
		m.release(op, w, measured)
	case history.End:
		m.end(op, w, measured)
	}
}

func (m *Meter) skip(op *history.Op, measured bool) {
	m.Answers.record(op.Due, op.Return, false)
	if measured {
		m.Visits.Skipped++
	}
}

func (m *Meter) acquire(op *history.Op, w *workerMeter, measured bool) {
	if op.Return == history.Forever {
		return
	}
	p := &m.pages[op.Key]
	if !w.waiting {
		w.waiting, w.key, w.first = true, op.Key, op.Call
		w.next, p.waiting = p.waiting, op.Worker+1
	}
	if measured {
		m.Tries.record(op.Latency())
		m.wakes[op.Woken].try(op.Outcome == history.OK)
	}
	if op.Outcome != history.OK {
		return
	}
	m.stopWaiting(op.Worker, w, op.Return, true, measured)
	w.granted, w.hold = op.Return, op.ID
	if m.excludes {
		m.grant(op, w.first, p)
	}
}

// stopWaiting books a wait. After the end of the measurement the crowd thins out; a wait that ends then is only
// known to have lasted until the end.
func (m *Meter) stopWaiting(worker int32, w *workerMeter, now time.Duration, granted, measured bool) {
	w.waiting = false
	at := &m.pages[w.key].waiting
	for *at != worker+1 {
		at = &m.workers[*at-1].next
	}
	*at = w.next
	if granted && measured {
		m.Acquire.record(now - w.first)
		m.interval.record(m.interval.acquire, now, now-w.first)
	}
	if seen, in := m.Waits.record(w.first, now, granted); in {
		w.waits++
		w.waited += seen
		w.longest = max(w.longest, seen)
	}
}

// grant and release pair up whichever comes second.
func (m *Meter) grant(op *history.Op, since time.Duration, p *pageMeter) {
	p.grant, p.grantee, p.since, p.woken, p.pending = op.Return, op.Worker, since, op.Woken, true
	p.oldest = since
	for n := p.waiting; n != 0; n = m.workers[n-1].next {
		p.oldest = min(p.oldest, m.workers[n-1].first)
	}
	m.pair(p)
}

func (m *Meter) release(op *history.Op, w *workerMeter, measured bool) {
	if op.Return == history.Forever || op.Hold != w.hold {
		return // a cleanup after an unknown acquire ends no hold
	}
	w.hold = 0
	if measured {
		m.Release.record(op.Latency())
		m.Hold.record(op.Call - w.granted)
	}
	m.held += m.within(w.granted, op.Call)
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
		m.Handoff.record(p.grant - p.release)
		m.wakes[p.woken].handed(p.grant - p.release)
		m.interval.record(m.interval.handoff, p.grant, p.grant-p.release)
	}
}

func (m *Meter) within(from, to time.Duration) time.Duration {
	return max(min(to, m.to)-max(from, m.from), 0)
}

func (m *Meter) store(op *history.Op) {
	switch {
	case op.Outcome == history.OK:
		m.Stores.Acknowledged++
	case op.Outcome == history.Unknown:
		m.Stores.Unknown++
	case op.Reason == history.Fenced:
		m.Stores.Fenced++
	}
}

func (m *Meter) end(op *history.Op, w *workerMeter, measured bool) {
	if w.waiting {
		m.stopWaiting(op.Worker, w, op.Return, false, measured)
	}
	if op.Outcome == history.OK && op.Return >= m.from && op.Return < m.to {
		w.finish++
	}
	m.Answers.record(op.Due, op.Return, op.Outcome == history.OK)
	if !measured {
		return
	}
	m.Visits.Begun++
	if m.open {
		m.Late.record(op.Call - op.Until)
	}
	switch {
	case op.Outcome == history.OK:
		m.Visits.Done++
		m.Response.record(op.Return - op.Due)
		m.interval.record(m.interval.response, op.Return, op.Return-op.Due)
	case op.Outcome == history.Unknown:
		m.Visits.Unknown++
	case op.Reason == history.Impatient:
		m.Visits.Timeout++
	default:
		m.Visits.Failed++
	}
}

// Finished is the number of counted visits that ended within the measurement.
func (m *Meter) Finished() (n int64) {
	for i := range m.workers {
		n += m.workers[i].finish
	}
	return n
}

// Finish ends the observation: waits that are still open are censored, and the last interval is handed on.
func (m *Meter) Finish() {
	for i := range m.workers {
		if w := &m.workers[i]; w.waiting {
			m.stopWaiting(int32(i), w, m.to, false, false)
		}
	}
	m.interval.flush(m.to + intervalWidth)
}
