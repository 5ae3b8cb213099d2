package measure

import (
	"cmp"
	"fmt"
	"sync/atomic"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/human"
	"hammerlock/results"
)

// Viewer makes snapshots of a run for a dashboard. The goroutine that passes an operation to the Meter passes it to
// the Viewer afterwards.
type Viewer struct {
	meter   *Meter
	part    history.Op // buffer for a part of a Visit, which stands for several operations
	stream  *checker.Stream
	head    Head
	header  history.Header
	told    func(*history.Op) (history.Injection, string) // see NewViewer
	seconds [61]Second                                    // the last 61 seconds, as a ring
	second  int64                                         // number of the second in progress
	acquire recent
	answer  recent
	strips  strips
	roles   []Roles
	stopped []atomic.Bool // indexed by worker: a fault has stopped the worker; any goroutine may set an element
	events  events
	known   time.Duration // time up to which all operations have arrived
	begun   begun
	seen    int   // number of violations in the stream's list that became events
	counted int64 // number of further violations, not in the list, that became events
}

// Surroundings has the facts in a snapshot that do not come from operations.
type Surroundings struct {
	Nodes    []NodeState
	Cuts     []string
	Agents   []results.LiveAgent // agents on other machines; nil if the workers run on this machine
	Cost     results.Cost
	Usage    results.Usage
	Measured bool // Usage is set
}

// NewViewer makes a Viewer for a meter. The function told gets the operation of a fault, and returns the injected
// fault with a description.
func NewViewer(m *Meter, head Head, header history.Header, told func(*history.Op) (history.Injection, string)) *Viewer {
	head.Unseen = header.Service
	v := &Viewer{meter: m, stream: checker.NewStream(&header), head: head, header: header, told: told,
		known: history.Forever, strips: newStrips(len(m.workers)), events: events{open: map[int64]int{}},
		stopped: make([]atomic.Bool, len(m.workers)), acquire: newRecent(), answer: newRecent()}
	v.stream.Overlap = v.strips.overlap
	return v
}

// Stop records that a fault has stopped a worker or, if the argument stopped is false, that the worker continues. Any
// goroutine may call it.
func (v *Viewer) Stop(worker int32, stopped bool) {
	if worker >= 0 && int(worker) < len(v.stopped) {
		v.stopped[worker].Store(stopped)
	}
}

// Interactive records that a user has changed the run, for example with a key.
func (v *Viewer) Interactive() { v.head.Interactive = true }

// Rate sets the rate that the dashboard shows, in visits per second; 0 = closed loop.
func (v *Viewer) Rate(perSecond float64) { v.head.Rate = perSecond }

// UpTo tells the Viewer that all operations which were called before the given time have arrived.
func (v *Viewer) UpTo(now time.Duration) { v.stream.UpTo(now) }

// Known sets the time up to which all operations have arrived. It is only called during a run; a replay knows all.
func (v *Viewer) Known(now time.Duration) { v.known = now }

// Begin records that the injection of a fault has started. The operation of the fault arrives later, when the fault
// is in force. Any goroutine may call it.
func (v *Viewer) Begin(number int64, name string, at time.Duration) {
	v.begun.mu.Lock()
	defer v.begun.mu.Unlock()
	v.begun.list = append(v.begun.list, beginning{number,
		Event{Kind: FaultEvent, At: at, Count: 1, Text: name + ": is being injected"}})
}

// States records the roles and states of the servers. It adds an event for each state that differs between before and
// after.
func (v *Viewer) States(now time.Duration, before, after []NodeState) {
	for i := range after {
		if i == len(v.roles) {
			v.roles = append(v.roles, Roles{Node: after[i].Name})
		}
		v.roles[i].saw(now, &after[i])
	}
	for i := range min(len(before), len(after)) {
		a, b := &before[i], &after[i]
		if a.State != b.State {
			v.events.add(Event{Kind: RoleEvent, At: now, Text: fmt.Sprintf("%s is %s", b.Name, b.State)})
		}
	}
}

func (v *Viewer) Observe(op *history.Op) {
	if op.Kind == history.Visit {
		for _, kind := range history.PartsOfVisit {
			v.Observe(op.Part(kind, &v.part))
		}
		return
	}
	v.stream.Observe(op)
	v.strips.observe(op)
	switch op.Kind {
	case history.Acquire:
		if op.Outcome == history.OK && op.Return != history.Forever && op.Worker >= 0 {
			v.roll(op.Return)
			waited := op.Return - v.strips.workers[op.Worker].tried
			v.acquire.record(op.Return, waited, v.meter.measures(op))
			v.now().Acquire.record(waited)
		}
	case history.End:
		v.roll(op.Return)
		if op.Outcome == history.OK {
			v.now().Done++
			v.now().Response.record(op.Return - op.Due)
			v.answer.record(op.Return, op.Return-op.Due, v.meter.measures(op))
		}
	case history.Fault:
		v.begun.end(op.Value)
		v.fault(op)
	case history.Heal:
		v.events.heal(op)
	case history.Lose, history.Release, history.Extend:
		if op.Kind == history.Lose || op.Outcome == history.Failed && op.Reason == history.Lost {
			v.events.add(Event{Kind: LeaseLostEvent, At: op.Return,
				Text: fmt.Sprintf("w%02d was told that its hold is lost", op.Worker)})
		}
	case history.Role, history.Incident, history.Gap:
		v.unplanned(op)
	case history.Crash:
		v.events.add(Event{Kind: CrashEvent, At: op.Call, Text: fmt.Sprintf("w%02d died", op.Worker)})
	}
}

// unplanned adds an event for a failure without a planned fault, or for a role change.
func (v *Viewer) unplanned(op *history.Op) {
	e := Event{Kind: RoleEvent, At: op.Return}
	switch _, e.Text = v.told(op); {
	case op.Kind == history.Gap:
		e.Kind, e.At, e.Text = UnplannedEvent, op.Call,
			cmp.Or(e.Text, "the machine paused for "+human.Duration(op.Latency()))
	case op.Kind == history.Incident:
		e.Kind, e.At = UnplannedEvent, op.Call
	}
	v.events.add(e)
}

func (v *Viewer) now() *Second { return &v.seconds[v.second%int64(len(v.seconds))] }

func (v *Viewer) roll(now time.Duration) {
	for n := int64(now / time.Second); v.second < n; {
		v.second = max(v.second, n-int64(len(v.seconds))) + 1
		*v.now() = Second{At: time.Duration(v.second) * time.Second}
	}
}

func (v *Viewer) fault(op *history.Op) {
	i, what := v.told(op)
	if i.Effect.Hits != nil && i.Effect.Hit(history.Nobody) {
		v.events.add(Event{Kind: RateEvent, At: op.Call, Text: what})
		return
	}
	what = i.Name + ": " + what
	if i.ByHand {
		what = "by hand: " + what
	}
	v.events.fault(op, what)
}
