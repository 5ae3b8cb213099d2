package measure

import (
	"strings"
	"time"

	"hammerlock/results"
)

// Snapshot is what can be said of a run at a moment. Once it was published nobody changes it or what it points to, so
// that drawing it takes no lock and the run never waits for a screen.
type Snapshot struct {
	Live
	Head      Head
	Stage     string        // starting, running, judging, saved, replay
	From, To  time.Duration // what is measured
	Paused    bool          // of a replay
	Speed     float64       // of a replay; 0 = as it was
	Steps     []Step        // of a start, the latest last
	Seconds   []Second      // the last minute, the oldest first; the last one goes on
	Latency   []LatencyRow
	Acquired  Buckets   // waits of those who got the lock
	Answered  Buckets   // responses
	Random    Quantiles // the wait of a worker picked at a random moment
	Longest   time.Duration
	LongestBy int // worker; -1 = no worker waits
	Lanes     []Strip
	LanesEnd  time.Duration // when their last cell ends
	Hidden    int           // workers without a lane
	// Lane is what a worker did in any part of a history, in so many cells; nil if the run goes on.
	Lane      func(worker int, from, to time.Duration, cells int) []Cell
	Fairness  results.Fairness
	Nodes     []NodeState
	Roles     []Roles  // what the nodes were; of a replay, of those that have changed
	Cuts      []string // rules of links that are in force
	Agents    []results.LiveAgent
	Cost      results.Cost
	Events    []Event  // the oldest first
	Dropped   int      // older events that are no longer kept
	Active    []string // faults
	Injected  int64    // faults so far
	Safety    Safety
	Generator results.Generator
	Board     *Board // of a job whose runs go on side by side
}

// Board says of each run of a job what has become of it. The snapshot that it is in shows the chosen one.
type Board struct {
	// those that failed first, then those that go on, those that are over, the latest first, and those that wait
	Rows   []Row
	Chosen int // number of the run
	Ended  int
	Left   time.Duration // about how long the others take; 0 = it is not known
}

// Row is a run on a board.
type Row struct {
	Number int
	Name   string
	State  string // waiting, running, or its verdict
	Text   string // what the verdict rests on, or how far the run is
	Place  int    // how many had ended before and with it; 0 = it has not ended
}

// Step is something that is done to bring a run up.
type Step struct {
	At    time.Duration // since the start began
	Doing string
}

// Head says which run it is.
type Head struct {
	Number, Of     int
	Topology, Lock string
	Scenario       string // empty if it is none of a catalogue
	Faults         []string
	Unseen         bool // who waits and who has the lock is not seen: what is visited has locks of its own
	Watched        bool // a program with a load of its own: it is judged at the end
	Workers, Keys  int
	Rate           float64 // 0 = closed loop
	Phases         []Span  // one after the other; nil if the load stays the same
	Command        string
	Label          string
	Interactive    bool // the run was changed by key
}

// Name says what is run.
func (h *Head) Name() string { return strings.TrimSpace(h.Topology + " " + h.Lock + " " + h.Scenario) }

// Second is what was finished within one second of the run.
type Second struct {
	At    time.Duration
	Done  int64
	Fault bool // a fault was in force
	// How long the waits took that were granted, and the visits that were counted.
	Acquire, Response Spread
}

// LatencyRow is a distribution over the last second, the last ten, and the whole measurement.
type LatencyRow struct {
	Name          string
	Now, Ten, Run Quantiles
}

// StripStep is the time that a cell of a strip stands for, StripCells how many there are: a minute.
const (
	StripStep  = 25 * time.Millisecond
	StripCells = 2400
)

// Cell says what a worker did within one step: any of the marks, and in the lower bits for how much of the step it held
// the lock.
type Cell uint32

// The marks, and Whole, with which a cell was held all the time.
const (
	Whole    Cell = 1 << 24
	Waited   Cell = 1 << (iota + 24) // for the lock
	Held                             // its lease was valid
	Orphaned                         // its lease was still in the servers after its hold had ended
	Stopped                          // a fault stopped it
	Overlap                          // another worker held the same lock with a valid lease
	Expired                          // it went on as the holder after its lease
	NotKnown                         // what it did is not known yet
)

// share is the bits that say how much of a cell was held.
const share = Waited - 1

// Share is how much of the step the lock was held.
func (c Cell) Share() float64 { return float64(c&share) / float64(Whole) }

// add marks a cell that begins at a time with what was done from one time to another.
func (c *Cell) add(begin, step, from, to time.Duration, mark Cell) {
	if *c |= mark; mark == Held {
		more := float64(min(to, begin+step)-max(from, begin)) / float64(step)
		*c += min(Cell(more*float64(Whole)), Whole-min(*c&share, Whole))
	}
}

// Strip is what a worker did in the last minute.
type Strip struct {
	Worker int
	Page   int32 // of the last hold
	Cells  []Cell
	Mode   Cell          // what it does now
	Since  time.Duration // for how long
	Lease  time.Duration // what is left of its lease; 0 = none, history.Forever without expiry
}

// NodeState is a server as it was seen last.
type NodeState struct {
	Name    string
	Role    string // primary, replica, sentinel; ? if it does not say
	Made    string // the role that it was made for
	State   string // up, down, paused, or "no answer": it runs and does not answer
	Of      string // replica: its primary
	Linked  bool   // replica: the link to its primary is up
	Lag     int64  // replica: bytes behind its primary; -1 = unknown
	Clients int64
}

// EventKind sorts events.
type EventKind string

// The kinds of event.
const (
	FaultEvent     EventKind = "fault"
	RateEvent      EventKind = "rate" // changed by key
	RoleEvent      EventKind = "role"
	UnplannedEvent EventKind = "unplanned" // a server or the machine failed by itself
	LeaseLostEvent EventKind = "lost"
	CrashEvent     EventKind = "crash"
	ViolationEvent EventKind = "VIOLATION"
)

// Event is something that happened in a run, beside visits.
type Event struct {
	Kind   EventKind
	At     time.Duration
	To     time.Duration // fault: when it was healed; 0 = not yet
	Count  int64         // how often it happened in a row
	Text   string
	Detail []string
	Around []Strip       // what the workers did around it; nil while that is not over
	Begin  time.Duration // of the strips' first cells
}

// Safety is what the streaming judge has proved.
type Safety struct {
	Violations int64
	First      string
	Excludes   bool
	SafeUpTo   time.Duration
}

// Controls are what a person may do to a run while it goes on; a nil function is unavailable. All of them may be
// called from any goroutine, return at once, and are recorded.
type Controls struct {
	Choose func(down int) // shows another run of a board
	Faults []Choice
	Inject func(fault, target string) error      // target: one of its choice, or empty
	Kill   func(node string) error               // a node that is down is started instead, empty
	Rate   func(factor float64) (float64, error) // of visits still to come; returns the new one, in visits a second
	// Pause says that the whole suite is about to be stopped; it returns the function that says that it goes on.
	Pause func(why string) (resume func())
	// Seek moves a replay: by so much, or to the beginning or the end with Seek(±history.Forever). PlayPause stops it
	// or lets it go on.
	Seek      func(by time.Duration)
	PlayPause func()
	Speed     func(factor float64) // of a replay
	// Violation moves a replay to the next violation, or to the one before if step is negative, and stops it there; it
	// tells whether there is one.
	Violation func(step int) bool
}

// Choice is a fault that can be injected, or why it cannot.
type Choice struct {
	Name, Doc, Refused string
	Targets            []string // what it can be aimed at; nil = it finds its target by itself
}
