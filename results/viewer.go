package results

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
)

// Viewer makes snapshots of a run that somebody watches. It is shown every operation after the meter was, by the same
// goroutine; its memory depends on the numbers of workers and pages, not on the length of the run.
type Viewer struct {
	meter   *Meter
	part    history.Op // of a Visit
	stream  *checker.Stream
	head    Head
	header  history.Header
	note    func(history.ID) string // the words for a fault
	seconds [61]Second
	second  int64 // number of the current one
	acquire recent
	answer  recent
	strips  []ribbon
	ghosts  map[int32]int32 // by page: the worker whose lease is left over
	open    map[int64]int   // faults that are not healed, by number: place in events, from the first ever
	events  []Event
	dropped int
	found   int   // sightings that became events
	counted int64 // violations without a sighting that did
	// by worker: somebody makes it stand; set by whoever does
	stopped []atomic.Bool
}

// Surroundings are what somebody else has seen of the run beside its operations.
type Surroundings struct {
	Nodes  []NodeState
	Cuts   []string
	Cost   Cost
	Load   Load
	Loaded bool // Load was measured
}

// ViewerOptions say what a viewer shows.
type ViewerOptions struct {
	Head   Head
	Header history.Header
	Note   func(history.ID) string
}

// NewViewer makes a viewer of what the meter measures.
func NewViewer(m *Meter, o ViewerOptions) *Viewer {
	v := &Viewer{meter: m, stream: checker.NewStream(&o.Header), head: o.Head, header: o.Header, note: o.Note,
		strips: make([]ribbon, len(m.workers)), ghosts: map[int32]int32{}, open: map[int64]int{},
		stopped: make([]atomic.Bool, len(m.workers)), acquire: newRecent(), answer: newRecent()}
	v.stream.Overlap = func(workers [2]int32, from, to time.Duration) {
		for _, w := range workers {
			v.strips[w].paint(from, to, Overlap)
		}
	}
	return v
}

// Stop says that a worker stands where it is, or goes on; any goroutine may call it.
func (v *Viewer) Stop(worker int32, stands bool) {
	if worker >= 0 && int(worker) < len(v.stopped) {
		v.stopped[worker].Store(stands)
	}
}

// Meddled says that a person has meddled.
func (v *Viewer) Meddled() { v.head.Interactive = true }

// Rate says how many visits a second are due by now; 0 in a closed loop.
func (v *Viewer) Rate(perSecond float64) { v.head.Rate = perSecond }

// UpTo says that everything that was called before then was observed.
func (v *Viewer) UpTo(now time.Duration) { v.stream.UpTo(now) }

// Observe takes an operation in.
func (v *Viewer) Observe(op *history.Op) {
	if op.Kind == history.Visit {
		for _, kind := range history.PartsOfVisit {
			v.Observe(op.Part(kind, &v.part))
		}
		return
	}
	v.stream.Observe(op)
	v.ribbon(op)
	switch op.Kind {
	case history.Acquire:
		if op.Outcome == history.OK && op.Return != history.Forever && op.Worker >= 0 {
			v.acquire.record(op.Return, op.Return-v.strips[op.Worker].tried)
		}
	case history.End:
		v.roll(op.Return)
		if s := &v.seconds[v.second%int64(len(v.seconds))]; op.Outcome == history.OK {
			s.Done++
			v.answer.record(op.Return, op.Return-op.Due)
		} else {
			s.Errors++
		}
	case history.Fault:
		v.fault(op)
	case history.Heal:
		if n, ok := v.open[op.Value]; ok {
			delete(v.open, op.Value)
			if n -= v.dropped; n >= 0 {
				v.events[n].To = op.Return
				v.events[n].Detail = append(v.events[n].Detail, "healed at "+at(op.Return))
			}
		}
	case history.Lose, history.Release, history.Extend:
		if op.Kind == history.Lose || op.Outcome == history.Failed && op.Reason == history.Lost {
			v.event(Event{Kind: LostEvent, At: op.Return, Text: fmt.Sprintf("w%02d was told that its hold is lost", op.Worker)})
		}
	case history.Crash:
		v.event(Event{Kind: CrashEvent, At: op.Call, Text: fmt.Sprintf("w%02d died", op.Worker)})
	}
}

// roll begins a new second when the current one is over.
func (v *Viewer) roll(now time.Duration) {
	for n := int64(now / time.Second); v.second < n; {
		waiting := 0
		for i := range v.meter.workers {
			if v.meter.workers[i].waiting {
				waiting++
			}
		}
		v.seconds[v.second%int64(len(v.seconds))].Waiting = waiting
		if n-v.second > int64(len(v.seconds)) {
			v.second = n - int64(len(v.seconds))
		}
		v.second++
		v.seconds[v.second%int64(len(v.seconds))] = Second{At: time.Duration(v.second) * time.Second}
	}
}

func (v *Viewer) fault(op *history.Op) {
	name, what := "a fault", ""
	if v.note != nil {
		what = v.note(op.ID)
	}
	if rate, ok := strings.CutPrefix(what, history.RateByKey); ok {
		v.event(Event{Kind: RateEvent, At: op.Call, Text: rate})
		return
	}
	if n := op.Value; n >= 0 && n < int64(len(v.header.Faults)) {
		name = v.header.Faults[n].Name
		what = name + ": " + what
	}
	e := Event{Kind: FaultEvent, At: op.Call, Text: what, Detail: []string{"began " + at(op.Call) + ", was in force " + at(op.Return)}}
	if op.Outcome == history.Failed {
		e.Text, e.To = "failed: "+what, op.Return
	}
	n := v.event(e)
	if op.Outcome != history.Failed {
		v.open[op.Value] = n
	}
}

const (
	keptEvents = 200
	oneEvent   = 500 * time.Millisecond // what happens again so soon is the same event
)

// event adds an event, or counts it if it is the last one once more, and returns its number.
func (v *Viewer) event(e Event) int {
	e.Count = 1
	if n := len(v.events); n > 0 && e.Kind != FaultEvent && e.Kind != RateEvent {
		if last := &v.events[n-1]; last.Kind == e.Kind && e.At-last.At < oneEvent {
			last.Count++
			return v.dropped + n - 1
		}
	}
	if len(v.events) == keptEvents {
		v.events = append(v.events[:0], v.events[1:]...)
		v.dropped++
	}
	v.events = append(v.events, e)
	return v.dropped + len(v.events) - 1
}

// sightings makes events of what the stream has proved.
func (v *Viewer) sightings() {
	count, all := v.stream.Violations()
	for _, s := range all[v.found:] {
		v.event(Event{Kind: ViolationEvent, At: s.At, Text: s.Text, Detail: []string{
			"what: " + s.Checker, "happened " + at(s.At) + ", proved " + at(s.Seen),
			fmt.Sprintf("operations %s of w%02d and %s of w%02d", s.Ops[0], s.Workers[0], s.Ops[1], s.Workers[1]),
		}})
	}
	v.found = len(all)
	if more := count - v.counted - int64(len(all)); more > 0 {
		v.counted += more
		v.event(Event{Kind: ViolationEvent, At: v.stream.SafeUpTo(), Text: "more violations"})
		v.events[len(v.events)-1].Count += more - 1
	}
}

// Roles says who became what between two looks at the servers.
func (v *Viewer) Roles(now time.Duration, before, after []NodeState) {
	for i := range after {
		if i >= len(before) {
			return
		}
		a, b := &before[i], &after[i]
		if a.State != b.State {
			v.event(Event{Kind: ElectionEvent, At: now, Text: fmt.Sprintf("%s is %s", b.Name, b.State)})
		}
		if a.Role != b.Role && b.Role != "?" && a.Role != "?" {
			v.event(Event{Kind: ElectionEvent, At: now, Text: fmt.Sprintf("%s became %s", b.Name, b.Role)})
		}
	}
}

func at(t time.Duration) string { return fmt.Sprintf("at %.3f s", t.Seconds()) }
