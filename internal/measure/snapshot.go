package measure

import (
	"strings"
	"time"

	"hammerlock/results"
)

// Snapshot is the state of a run at one time, for a dashboard. It never changes after it was published. So a
// dashboard reads it without a lock, and never delays the run.
type Snapshot struct {
	Live
	Head      Head
	Stage     string        // starting, running, judging, saved, or replay
	From, To  time.Duration // start and end of the measurement
	Paused    bool          // a replay is paused
	Speed     float64       // speed of a replay relative to the run; 0 = the same speed
	Steps     []Step        // steps of the start, the latest last
	Seconds   []Second      // the last minute, the oldest second first; the newest second is not over
	Latency   []LatencyRow
	Acquired  Buckets   // lengths of waits that ended with a grant in the measurement
	Answered  Buckets   // response times in the measurement
	Random    Quantiles // lengths of the waits that are in progress at a random moment
	Longest   time.Duration
	LongestBy int // worker with the longest wait in progress; -1 = no worker waits
	Lanes     []Strip
	LanesEnd  time.Duration // end of the last cells in Lanes
	Hidden    int           // number of workers without a lane
	// Lane returns what a worker did in any period of a saved history, divided into cells. It is nil during a run.
	Lane      func(worker int, from, to time.Duration, cells int) []Cell
	Fairness  results.Fairness
	Nodes     []NodeState
	Roles     []Roles  // role changes of nodes; in a replay, nodes without changes are missing
	Cuts      []string // rules of the network proxies that are in force
	Agents    []results.LiveAgent
	Cost      results.Cost
	Events    []Event  // the latest events, the oldest first
	Dropped   int      // number of older events, which were dropped
	Active    []string // faults in force
	Injected  int64    // number of faults injected so far
	Safety    Safety
	Generator results.Generator
	Board     *Board // all runs of a job with parallel runs; nil for other jobs
	// Exploration is set if the snapshot shows an exploration. It has no measurements.
	Exploration *Exploration
}

// Exploration is the state of an exploration in virtual time.
type Exploration struct {
	Schedules, Remaining int     // number of schedules that were run, and about how many follow
	Speed                float64 // schedules per second
	Deviations           int     // largest number of deviations in the current schedules
	Took                 time.Duration
	Text                 string // progress or, at the end, the verdict in a sentence
	Verdict              string // PASS, FAIL or INCONCLUSIVE; empty until the end
}

// Board has the state of every run of a job. The other fields of the Snapshot show one of these runs.
type Board struct {
	// Rows has the failed runs first, then those in progress, those that ended (the latest first), and those that
	// wait.
	Rows   []Row
	Chosen int // number of the run that the Snapshot shows
	Ended  int
	Left   time.Duration // expected time for the remaining runs; 0 = unknown
}

type Row struct {
	Number int
	Name   string
	State  string // waiting, running, or the verdict
	Text   string // reason for the verdict, or progress of the run
	Place  int    // position in the order in which runs ended; 0 = the run has not ended
}

type Step struct {
	At    time.Duration // time since the start began
	Doing string
}

// Head identifies the run that a Snapshot shows.
type Head struct {
	Number, Of     int
	Topology, Lock string
	Scenario       string // empty if there is none
	Faults         []string
	Unseen         bool // the run visits a service, whose waiters and holders are invisible
	Watched        bool // a watched program makes the load, and is judged at the end
	Workers, Keys  int
	Rate           float64 // visits per second; 0 = closed loop
	Phases         []Span  // consecutive phases of the load; nil = the load is constant
	Command        string
	Label          string
	Interactive    bool // a user has changed the run with a key
}

// Name returns the topology, the lock and the scenario.
func (h *Head) Name() string { return strings.TrimSpace(h.Topology + " " + h.Lock + " " + h.Scenario) }

// Second has counts for one second of the run.
type Second struct {
	At    time.Duration
	Done  int64
	Fault bool // a fault was in force during the second
	// Acquire has the lengths of waits that ended with a grant. Response has the response times.
	Acquire, Response Spread
}

type LatencyRow struct {
	Name          string
	Now, Ten, Run Quantiles
}

// A strip is the picture of what one worker did in the last minute. It consists of StripCells cells, each of which
// covers the time StripStep.
const (
	StripStep  = 25 * time.Millisecond
	StripCells = 2400
)

// Cell shows what a worker did within one StripStep. Its upper bits are marks. Its lower bits tell in which share of
// the step the worker held the lock.
type Cell uint32

// The marks of a cell, which can be combined. Whole is not a mark, but the share if the lock was held all the time.
const (
	Whole    Cell = 1 << 24
	Waited   Cell = 1 << (iota + 24) // the worker waited for the lock
	Held                             // the worker held the lock with a valid lease
	Orphaned                         // the hold was over, but servers still had its lease
	Stopped                          // a fault had stopped the worker
	Overlap                          // another worker held the same lock with a valid lease
	Expired                          // the worker acted as holder after the end of its lease
	NotKnown                         // it is not yet known what the worker did
)

// share is the mask for the bits of the share.
const share = Waited - 1

// Share returns the share of the step in which the worker held the lock, 0 to 1.
func (c Cell) Share() float64 { return float64(c&share) / float64(Whole) }

// add adds a mark to the cell. The worker's action lasted from the time "from" to the time "to". The cell covers a
// period of the length step, which starts at the time begin.
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
	Mode   Cell          // what the worker does at present
	Since  time.Duration // for how long it has done that
	Lease  time.Duration // remaining time of the lease; 0 = no lease, history.Forever = the lock does not expire
}

// NodeState is the state of a server when it was last asked.
type NodeState struct {
	Name    string
	Role    string // primary, replica, sentinel, or ? if unknown
	Made    string // role at the start of the server
	State   string // up, down, paused, or "no answer" if the process runs but does not reply
	Of      string // for a replica: the name of its primary
	Linked  bool   // the replica is connected to its primary
	Lag     int64  // how many bytes a replica is behind its primary; -1 = unknown
	Clients int64
}

type EventKind string

const (
	FaultEvent     EventKind = "fault"
	RateEvent      EventKind = "rate" // a user changed the rate with a key
	RoleEvent      EventKind = "role"
	UnplannedEvent EventKind = "unplanned" // a failure of a server or the machine without a planned fault
	LeaseLostEvent EventKind = "lost"
	CrashEvent     EventKind = "crash"
	ViolationEvent EventKind = "VIOLATION"
)

// Event is an entry in the list of events of a run. Visits are not events.
type Event struct {
	Kind   EventKind
	At     time.Duration
	To     time.Duration // when the fault was healed; 0 = it is in force
	Count  int64         // number of such events in quick succession
	Text   string
	Detail []string
	Around []Strip       // what the workers did around the event; nil until aroundAfter has passed
	Begin  time.Duration // start of the first cell of each strip in Around
}

// Safety has the violations that have been proved so far.
type Safety struct {
	Violations int64
	First      string
	Excludes   bool
	SafeUpTo   time.Duration
}

// Controls has the actions that a user may take during a run. A nil function means that the action is not available.
// Any goroutine may call the functions. They do not block. Each action that changes the run is recorded in the
// history.
type Controls struct {
	Choose func(down int) // moves down on the Board by a number of rows, and shows that run
	Faults []Choice
	Inject func(fault, target string) error // injects a fault; target is one of the Targets of its Choice, or empty
	// Kill kills a node, or starts it again if it is down.
	Kill func(node string) error
	// Rate multiplies the rate of future visits by the factor. It returns the new rate in visits per second.
	Rate func(factor float64) (float64, error)
	// Pause records that the whole suite is about to be stopped, with the reason why. Call resume when it continues.
	Pause func(why string) (resume func())
	// Seek moves a replay forward by a duration, or back if that is negative. With ±history.Forever it moves to the
	// end or to the beginning. PlayPause stops a replay, or continues it.
	Seek      func(by time.Duration)
	PlayPause func()
	Speed     func(factor float64) // multiplies the speed of a replay
	// Violation moves a replay to the next violation, or to the previous one if step is negative, and pauses the
	// replay there. It returns false if there is no such violation.
	Violation func(step int) bool
}

// Choice is a fault that a user may inject. If it is impossible, Refused is the reason; otherwise Refused is empty.
type Choice struct {
	Name, Doc, Refused string
	Targets            []string // possible targets; nil = the fault chooses its target
}
