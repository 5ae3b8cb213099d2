package measure

import (
	"strings"
	"time"

	"hammerlock/results"
)

// Snapshot is the state of a run at a moment, for a dashboard. It never changes after it was published, so that drawing
// it needs no lock and never delays the run.
type Snapshot struct {
	Live
	Head      Head
	Stage     string        // starting, running, judging, saved or replay
	From, To  time.Duration // what is measured
	Paused    bool          // of a replay
	Speed     float64       // speed of a replay; 0 = as in the original run
	Steps     []Step        // steps of the start, the latest last
	Seconds   []Second      // the last minute, the oldest second first; the newest is incomplete
	Latency   []LatencyRow
	Acquired  Buckets   // how long granted Acquires had waited
	Answered  Buckets   // responses
	Random    Quantiles // the wait of a worker that is picked at a random moment
	Longest   time.Duration
	LongestBy int // the worker that waits longest; -1 = none waits
	Lanes     []Strip
	LanesEnd  time.Duration // end of the last cells of the lanes
	Hidden    int           // number of workers that are not shown
	// Lane returns what a worker did in any part of a history, in a number of cells; nil while the run is in progress.
	Lane      func(worker int, from, to time.Duration, cells int) []Cell
	Fairness  results.Fairness
	Nodes     []NodeState
	Roles     []Roles  // role changes of the nodes; in a replay only of nodes that had any
	Cuts      []string // active rules of the network proxies
	Agents    []results.LiveAgent
	Cost      results.Cost
	Events    []Event  // the oldest first
	Dropped   int      // number of older events that were dropped
	Active    []string // faults
	Injected  int64    // faults so far
	Safety    Safety
	Generator results.Generator
	Board     *Board // board of a job with several runs at the same time
}

// Board has the state of each run of a job. The rest of the Snapshot shows one of them.
type Board struct {
	// Rows lists failed runs first, then the running ones, the finished ones (latest first), and the waiting ones.
	Rows   []Row
	Chosen int // number of the run that is shown
	Ended  int
	Left   time.Duration // expected time of the remaining runs; 0 = unknown
}

// Row is one run of a Board.
type Row struct {
	Number int
	Name   string
	State  string // waiting, running, or the verdict
	Text   string // reason of the verdict, or progress of the run
	Place  int    // the how-manieth run it was to end; 0 = it has not ended
}

// Step is one step of the start of a run.
type Step struct {
	At    time.Duration // time since the start began
	Doing string
}

// Head says which run this is.
type Head struct {
	Number, Of     int
	Topology, Lock string
	Scenario       string // empty without a scenario
	Faults         []string
	Unseen         bool // the service under test does its own locking, so that waiters and holders are invisible
	Watched        bool // a program under test makes the load, and is judged at the end
	Workers, Keys  int
	Rate           float64 // visits per second; 0 = closed loop
	Phases         []Span  // phases of the load, one after the other; nil if the load is constant
	Command        string
	Label          string
	Interactive    bool // a user has changed the run by key
}

// Name is the topology and the lock of the run.
func (h *Head) Name() string { return strings.TrimSpace(h.Topology + " " + h.Lock + " " + h.Scenario) }

// Second counts what ended within one second of the run.
type Second struct {
	At    time.Duration
	Done  int64
	Fault bool // a fault was in force in it
	// Acquire has how long granted Acquires had waited, Response the response times of counted visits.
	Acquire, Response Spread
}

// LatencyRow is a distribution over the last second, the last ten seconds, and the whole measurement.
type LatencyRow struct {
	Name          string
	Now, Ten, Run Quantiles
}

// A strip shows what a worker did in the last minute, as cells. StripStep is the time that a cell covers; StripCells is
// their number.
const (
	StripStep  = 25 * time.Millisecond
	StripCells = 2400
)

// Cell says what a worker did within one StripStep: marks in the upper bits and, in the lower bits, the share of the
// step in which it held the lock.
type Cell uint32

// The marks. Whole is the share of a cell in which the lock was held all the time.
const (
	Whole    Cell = 1 << 24
	Waited   Cell = 1 << (iota + 24) // for the lock
	Held                             // the worker held the lock with a valid lease
	Orphaned                         // its lease was still on the servers after its hold had ended
	Stopped                          // a fault had stopped it
	Overlap                          // another worker held the same lock with a valid lease
	Expired                          // the worker acted as the holder after the end of its lease
	NotKnown                         // it is not known yet what the worker did
)

// share masks the bits with the share in which the lock was held.
const share = Waited - 1

// Share is the share of the step in which the lock was held.
func (c Cell) Share() float64 { return float64(c&share) / float64(Whole) }

// add marks a cell with something that the worker did between two times; begin is the time at which the cell begins.
func (c *Cell) add(begin, step, from, to time.Duration, mark Cell) {
	if *c |= mark; mark == Held {
		more := float64(min(to, begin+step)-max(from, begin)) / float64(step)
		*c += min(Cell(more*float64(Whole)), Whole-min(*c&share, Whole))
	}
}

// Strip shows what a worker did in the last minute.
type Strip struct {
	Worker int
	Page   int32 // page of its last hold
	Cells  []Cell
	Mode   Cell          // its current action
	Since  time.Duration // for how long
	Lease  time.Duration // rest of its lease; 0 = none, history.Forever = the lock does not expire
}

// NodeState is the state of a server when it was last asked.
type NodeState struct {
	Name    string
	Role    string // primary, replica, sentinel or ? if unknown
	Made    string // its role when it was started
	State   string // up, down, paused, or "no answer": it runs and does not answer
	Of      string // replica: its primary
	Linked  bool   // a replica is connected to its primary
	Lag     int64  // how many bytes a replica is behind its primary; -1 = unknown
	Clients int64
}

// EventKind sorts events.
type EventKind string

// Kinds of events.
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
	To     time.Duration // time at which a fault was healed; 0 = not yet
	Count  int64         // number of repetitions
	Text   string
	Detail []string
	Around []Strip       // what the workers did around it; nil until that time is over
	Begin  time.Duration // time of the first cells of Around
}

// Safety lists the violations that were proved so far.
type Safety struct {
	Violations int64
	First      string
	Excludes   bool
	SafeUpTo   time.Duration
}

// Controls are the actions that a user may take during a run; nil functions are unavailable. Any goroutine may call
// them. They return at once, and each action is recorded.
type Controls struct {
	Choose func(down int) // shows another run of the Board
	Faults []Choice
	Inject func(fault, target string) error // injects a fault; target is one of its Choice's targets, or empty
	// kills a node, or starts it if it is down; returns an error message, or ""
	Kill func(node string) error
	// multiplies the rate of future visits by a factor; returns the new rate per second
	Rate func(factor float64) (float64, error)
	// Pause records that the whole suite is about to be stopped; the function that it returns records that it goes on.
	Pause func(why string) (resume func())
	// Seek moves a replay by a time, or to its beginning or end with ±history.Forever. PlayPause stops or continues it.
	Seek      func(by time.Duration)
	PlayPause func()
	Speed     func(factor float64) // of a replay
	// Violation moves a replay to the next violation, or to the one before if step is negative, and stops it there. It
	// returns whether there is one.
	Violation func(step int) bool
}

// Choice is a fault that a user may inject, or why that is impossible.
type Choice struct {
	Name, Doc, Refused string
	Targets            []string // possible targets; nil = the fault chooses its target itself
}
