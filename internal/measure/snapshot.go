package measure

import (
	"strings"
	"time"

	"hammerlock/results"
)

// Snapshot is the state of a run at a moment. It is immutable once it is published, so drawing it takes no lock and the
// run never waits for a screen.
type Snapshot struct {
	Live
	Head      Head
	Stage     string        // starting, running, judging, saved, replay
	From, To  time.Duration // what is measured
	Paused    bool          // of a replay
	Speed     float64       // the speed of a replay; 0 = original speed
	Steps     []Step        // the steps of the start, the latest last
	Seconds   []Second      // the last minute, the oldest second first; the last second is incomplete
	Latency   []LatencyRow
	Acquired  Buckets   // waits of granted acquires
	Answered  Buckets   // responses
	Random    Quantiles // the wait of a worker picked at a random moment
	Longest   time.Duration
	LongestBy int // worker; -1 = no worker waits
	Lanes     []Strip
	LanesEnd  time.Duration // when their last cell ends
	Hidden    int           // number of workers without a lane
	// Lane returns what a worker did in any part of a history, in a number of cells; nil while the run goes on.
	Lane      func(worker int, from, to time.Duration, cells int) []Cell
	Fairness  results.Fairness
	Nodes     []NodeState
	Roles     []Roles  // the nodes' roles; in a replay, of nodes that changed roles
	Cuts      []string // active rules of links
	Agents    []results.LiveAgent
	Cost      results.Cost
	Events    []Event  // the oldest first
	Dropped   int      // number of older events that were dropped
	Active    []string // faults
	Injected  int64    // faults so far
	Safety    Safety
	Generator results.Generator
	Board     *Board // for a job whose runs go on side by side
}

// Board has the state of each run of a job. Its snapshot shows the chosen run.
type Board struct {
	// failed runs first, then the running ones, the finished ones (latest first), and the waiting ones
	Rows   []Row
	Chosen int // number of the chosen run
	Ended  int
	Left   time.Duration // expected time of the other runs; 0 = unknown
}

// Row is a run on a board.
type Row struct {
	Number int
	Name   string
	State  string // waiting, running, or its verdict
	Text   string // the reason of the verdict, or the progress of the run
	Place  int    // its place in the order of ends; 0 = it has not ended
}

// Step is one step of a run's start.
type Step struct {
	At    time.Duration // since the start began
	Doing string
}

// Head identifies the run.
type Head struct {
	Number, Of     int
	Topology, Lock string
	Scenario       string // empty without a scenario
	Faults         []string
	Unseen         bool // waiters and holders are invisible: the visited service does its own locking
	Watched        bool // a program with its own load, which is judged at the end
	Workers, Keys  int
	Rate           float64 // 0 = closed loop
	Phases         []Span  // in sequence; nil if the load does not change
	Command        string
	Label          string
	Interactive    bool // a user changed the run by key
}

// Name is the run's topology and lock.
func (h *Head) Name() string { return strings.TrimSpace(h.Topology + " " + h.Lock + " " + h.Scenario) }

// Second counts what ended within one second of the run.
type Second struct {
	At    time.Duration
	Done  int64
	Fault bool // a fault was in force
	// Acquire has the waits of granted acquires, Response the response times of counted visits.
	Acquire, Response Spread
}

// LatencyRow is a distribution over the last second, the last ten, and the whole measurement.
type LatencyRow struct {
	Name          string
	Now, Ten, Run Quantiles
}

// StripStep is the time that a cell of a strip covers; StripCells is the number of cells: a minute.
const (
	StripStep  = 25 * time.Millisecond
	StripCells = 2400
)

// Cell says what a worker did within one step: marks and, in the lower bits, the share of the step in which it held the
// lock.
type Cell uint32

// The marks; Whole is the share of a cell in which the lock was held all the time.
const (
	Whole    Cell = 1 << 24
	Waited   Cell = 1 << (iota + 24) // for the lock
	Held                             // it held the lock with a valid lease
	Orphaned                         // its lease was still in the servers after its hold had ended
	Stopped                          // a fault stopped it
	Overlap                          // another worker held the same lock with a valid lease
	Expired                          // it acted as the holder after its lease
	NotKnown                         // its action is not known yet
)

// share masks the bits for the share in which the lock was held.
const share = Waited - 1

// Share is the share of the step in which the lock was held.
func (c Cell) Share() float64 { return float64(c&share) / float64(Whole) }

// add marks a cell with an action between two times; begin is the cell's begin.
func (c *Cell) add(begin, step, from, to time.Duration, mark Cell) {
	if *c |= mark; mark == Held {
		more := float64(min(to, begin+step)-max(from, begin)) / float64(step)
		*c += min(Cell(more*float64(Whole)), Whole-min(*c&share, Whole))
	}
}

// Strip shows what a worker did in the last minute.
type Strip struct {
	Worker int
	Page   int32 // the page of its last hold
	Cells  []Cell
	Mode   Cell          // its current action
	Since  time.Duration // for how long
	Lease  time.Duration // the rest of its lease; 0 = none, history.Forever = without expiry
}

// NodeState is the last known state of a server.
type NodeState struct {
	Name    string
	Role    string // primary, replica, sentinel; ? if unknown
	Made    string // its role at the start
	State   string // up, down, paused, or "no answer": it runs and does not answer
	Of      string // replica: its primary
	Linked  bool   // for a replica: the link to its primary is up
	Lag     int64  // for a replica: bytes behind its primary; -1 = unknown
	Clients int64
}

// EventKind sorts events.
type EventKind string

// The kinds of event.
const (
	FaultEvent     EventKind = "fault"
	RateEvent      EventKind = "rate" // changed by key
	RoleEvent      EventKind = "role"
	UnplannedEvent EventKind = "unplanned" // a server or the machine failed without a planned fault
	LeaseLostEvent EventKind = "lost"
	CrashEvent     EventKind = "crash"
	ViolationEvent EventKind = "VIOLATION"
)

// Event is an event of a run other than a visit.
type Event struct {
	Kind   EventKind
	At     time.Duration
	To     time.Duration // for a fault: when it was healed; 0 = not yet
	Count  int64         // number of repetitions
	Text   string
	Detail []string
	Around []Strip       // what the workers did around it; nil until that time is over
	Begin  time.Duration // time of the strips' first cells
}

// Safety has the violations that the streaming judge has proved.
type Safety struct {
	Violations int64
	First      string
	Excludes   bool
	SafeUpTo   time.Duration
}

// Controls are the actions that a user may take during a run; a nil function is unavailable. Any goroutine may call
// them. They return at once, and each is recorded.
type Controls struct {
	Choose func(down int) // shows another run of a board
	Faults []Choice
	Inject func(fault, target string) error      // target: one of the fault's choices, or empty
	Kill   func(node string) error               // starts the node instead if it is down; returns the mistake, or empty
	Rate   func(factor float64) (float64, error) // changes the rate of later visits; returns the new rate per second
	// Pause records that the whole suite is about to be stopped; the returned function records that it goes on.
	Pause func(why string) (resume func())
	// Seek moves a replay by a time, or to one of its ends with Seek(±history.Forever). PlayPause stops or continues
	// it.
	Seek      func(by time.Duration)
	PlayPause func()
	Speed     func(factor float64) // of a replay
	// Violation moves a replay to the next violation, or to the one before if step is negative, and stops it there; it
	// returns whether there is one.
	Violation func(step int) bool
}

// Choice is a fault that a user can inject, or the reason why not.
type Choice struct {
	Name, Doc, Refused string
	Targets            []string // possible targets; nil = the fault chooses its target itself
}
