package measure

import (
	"strings"
	"time"

	"hammerlock/results"
)

// Snapshot is the state of a run at one time, for a dashboard. It never changes after it is published. So drawing it
// needs no lock and never delays the run.
type Snapshot struct {
	Live
	Head      Head
	Stage     string        // starting, running, judging, saved or replay
	From, To  time.Duration // the measured period
	Paused    bool          // a replay is paused
	Speed     float64       // speed of a replay; 0 = as in the original run
	Steps     []Step        // steps of the start, the latest last
	Seconds   []Second      // the last minute, the oldest second first; the newest is incomplete
	Latency   []LatencyRow
	Acquired  Buckets   // waits that ended with a grant, within the measurement
	Answered  Buckets   // response times within the measurement
	Random    Quantiles // length of the wait of a worker that is picked at a random moment
	Longest   time.Duration
	LongestBy int // worker with the longest current wait; -1 = none waits
	Lanes     []Strip
	LanesEnd  time.Duration // end of the last cells in Lanes
	Hidden    int           // number of workers without a lane
	// Lane returns a worker's actions in any period of a history, as the given number of cells; nil during a run.
	Lane      func(worker int, from, to time.Duration, cells int) []Cell
	Fairness  results.Fairness
	Nodes     []NodeState
	Roles     []Roles  // role changes of the nodes; in a replay only of nodes with changes
	Cuts      []string // active rules of the network proxies
	Agents    []results.LiveAgent
	Cost      results.Cost
	Events    []Event  // the oldest first
	Dropped   int      // number of older events that are not in Events
	Active    []string // faults in force
	Injected  int64    // number of faults so far
	Safety    Safety
	Generator results.Generator
	Board     *Board // state of a job with several parallel runs; nil if there is one run
}

// Board has the state of each run of a job. The rest of the Snapshot shows one run.
type Board struct {
	// Rows has the failed runs first, then the running, the finished (latest first) and the waiting ones.
	Rows   []Row
	Chosen int // number of the run that the Snapshot shows
	Ended  int
	Left   time.Duration // expected time that the remaining runs take; 0 = unknown
}

type Row struct {
	Number int
	Name   string
	State  string // waiting, running, or the verdict
	Text   string // reason for the verdict, or progress of the run
	Place  int    // rank in the order in which runs ended; 0 = it has not ended
}

type Step struct {
	At    time.Duration // time since the start began
	Doing string
}

// Head identifies the run.
type Head struct {
	Number, Of     int
	Topology, Lock string
	Scenario       string // empty if there is none
	Faults         []string
	Unseen         bool // the service under test does its own locking, so waiters and holders are invisible
	Watched        bool // a program under test makes the load, and is judged at the end
	Workers, Keys  int
	Rate           float64 // visits per second; 0 = closed loop
	Phases         []Span  // consecutive phases of the load; nil if the load is constant
	Command        string
	Label          string
	Interactive    bool // a user has changed the run with a key
}

// Name returns the topology, the lock and the scenario.
func (h *Head) Name() string { return strings.TrimSpace(h.Topology + " " + h.Lock + " " + h.Scenario) }

// Second has the counts of one second of the run.
type Second struct {
	At    time.Duration
	Done  int64
	Fault bool // a fault was in force
	// Acquire counts the waits that ended with a grant; Response counts response times.
	Acquire, Response Spread
}

type LatencyRow struct {
	Name          string
	Now, Ten, Run Quantiles
}

// A strip shows a worker's actions in the last minute, as StripCells cells. Each covers StripStep.
const (
	StripStep  = 25 * time.Millisecond
	StripCells = 2400
)

// Cell shows a worker's actions within one StripStep. The upper bits are marks. The lower bits have the share of the
// step in which the worker held the lock.
type Cell uint32

// The marks. Whole is the value of the share for a lock that was held in the whole step.
const (
	Whole    Cell = 1 << 24
	Waited   Cell = 1 << (iota + 24) // the worker waited for the lock
	Held                             // the worker held the lock with a valid lease
	Orphaned                         // the worker's hold was over, but the servers still had its lease
	Stopped                          // a fault had stopped the worker
	Overlap                          // another worker held the same lock with a valid lease
	Expired                          // the worker acted as holder after its lease had ended
	NotKnown                         // the worker's action is not known yet
)

// share masks the bits of the share.
const share = Waited - 1

// Share returns the share of the step in which the lock was held, 0 to 1.
func (c Cell) Share() float64 { return float64(c&share) / float64(Whole) }

// add marks a cell with an action of the worker between two times. The cell covers the step from begin.
func (c *Cell) add(begin, step, from, to time.Duration, mark Cell) {
	if *c |= mark; mark == Held {
		more := float64(min(to, begin+step)-max(from, begin)) / float64(step)
		*c += min(Cell(more*float64(Whole)), Whole-min(*c&share, Whole))
	}
}

type Strip struct {
	Worker int
	Page   int32 // page of its last hold
	Cells  []Cell
	Mode   Cell          // current action
	Since  time.Duration // duration of the current action
	Lease  time.Duration // time left of the lease; 0 = none, history.Forever = the lock does not expire
}

// NodeState is the state of a server at the last query.
type NodeState struct {
	Name    string
	Role    string // primary, replica, sentinel, or ? if unknown
	Made    string // role at its start
	State   string // up, down, paused, or "no answer" if it runs but does not answer
	Of      string // of a replica: the name of its primary
	Linked  bool   // the replica is connected to its primary
	Lag     int64  // number of bytes by which a replica is behind its primary; -1 = unknown
	Clients int64
}

type EventKind string

const (
	FaultEvent     EventKind = "fault"
	RateEvent      EventKind = "rate" // a user changed the rate with a key
	RoleEvent      EventKind = "role"
	UnplannedEvent EventKind = "unplanned" // a server or the machine failed without a planned fault
	LeaseLostEvent EventKind = "lost"
	CrashEvent     EventKind = "crash"
	ViolationEvent EventKind = "VIOLATION"
)

// Event is an event of a run, except for visits.
type Event struct {
	Kind   EventKind
	At     time.Duration
	To     time.Duration // time at which the fault was healed; 0 = not yet
	Count  int64         // number of repetitions
	Text   string
	Detail []string
	Around []Strip       // the workers' actions around the event; nil until aroundAfter has passed
	Begin  time.Duration // start of the first cells of Around
}

// Safety has the violations that were proved so far.
type Safety struct {
	Violations int64
	First      string
	Excludes   bool
	SafeUpTo   time.Duration
}

// Controls has the actions that a user may take during a run; a nil function means that the action is unavailable. Any
// goroutine may call them. They return without waiting, and each action is recorded.
type Controls struct {
	Choose func(down int) // shows the run that is this many rows further down on the Board
	Faults []Choice
	Inject func(fault, target string) error // injects a fault; target is one of its Choice's targets, or empty
	// Kill kills a node, or starts it if it is down. It returns an error message, or "".
	Kill func(node string) error
	// Rate multiplies the rate of future visits by a factor. It returns the new rate per second.
	Rate func(factor float64) (float64, error)
	// Pause records that the whole suite is about to be stopped. The function that it returns records the end of that
	// pause.
	Pause func(why string) (resume func())
	// Seek moves a replay by a duration, or to its beginning or end with ±history.Forever. PlayPause stops or
	// continues it.
	Seek      func(by time.Duration)
	PlayPause func()
	Speed     func(factor float64) // multiplies the speed of a replay
	// Violation moves a replay to the next violation, or to the previous one if step is negative, and stops it there.
	// It returns whether such a violation exists.
	Violation func(step int) bool
}

// Choice is a fault that a user may inject. If Refused is not empty, it says why the fault is impossible.
type Choice struct {
	Name, Doc, Refused string
	Targets            []string // possible targets; nil = the fault chooses its own target
}
