// Package results has the record of a run: its measurements and verdicts. It writes them as tables, as JSON, for CI
// systems, and to the files of a saved run.
package results

import (
	"time"

	"hammerlock/checker"
	"hammerlock/history"
)

// schemaVersion is the version of the JSON format. It remains when a field is added. Names and units of fields never
// change within a version.
const schemaVersion = 1

// Run is the record of one run. Durations are in nanoseconds.
type Run struct {
	Schema  int       `json:"schema"` // schemaVersion of the program that wrote the record; 0 in old runs
	Name    string    `json:"name"`
	Started time.Time `json:"started"`
	Partial string    `json:"partial,omitempty"` // why the run ended early; empty if it did not
	// Interactive means that a user has changed the run with the keyboard. The history has each change. Assertions are
	// not checked.
	Interactive bool   `json:"interactive,omitempty"`
	Aborted     string `json:"aborted,omitempty"` // the assertion that ended the run early; empty if none did
	// Before has, for each earlier attempt, the unplanned event that made the attempt inconclusive.
	Before  []string `json:"attempts_before,omitempty"`
	Earlier []string `json:"attempts_saved,omitempty"` // names of the earlier attempts that this run replaces
	// Stretched is the factor by which all times were multiplied, because the machine was too slow before or the
	// planned leases were too short for the program.
	Stretched int    `json:"stretched,omitempty"`
	Took      int64  `json:"took_ns,omitempty"`  // total time, including the start of servers and the judgement
	Recorded  bool   `json:"recorded,omitempty"` // HistoryFile has every operation
	Explored  bool   `json:"explored,omitempty"` // an exploration: the run summarizes many schedules in virtual time
	Label     string `json:"label,omitempty"`    // a warning about all numbers of the run
	Command   string `json:"command"`            // the command that repeats the run

	Topology string `json:"topology"`
	Lock     string `json:"lock"`
	Scenario string `json:"scenario,omitempty"` // empty = no scenario
	Strains  string `json:"strains,omitempty"`  // what the scenario strains, in words
	// Class is one of scenarios.Classes; empty = none.
	Class   string `json:"class,omitempty"`
	Service string `json:"service,omitempty"` // how a service under test was visited; empty = no service
	// Wire describes the observed network traffic of a program; empty = the suite's workers made the load.
	Wire    string   `json:"wire,omitempty"`
	Seen    []Fact   `json:"seen,omitempty"`  // observations about a program that are no violations
	Locks   *Locks   `json:"locks,omitempty"` // measurements of the locks of a program under test
	Counter string   `json:"counter_store"`
	Faults  []string `json:"faults"`
	Config

	Arrivals   Arrivals      `json:"arrivals"` // open loop: counts over the whole run
	Visits     Visits        `json:"visits"`
	Views      Views         `json:"counter"`
	Latency    Latencies     `json:"latency"`
	Waiting    Waiting       `json:"waiting"`
	Throughput float64       `json:"throughput_per_s"`
	Swing      Swing         `json:"swing"`
	Fairness   Fairness      `json:"fairness"`
	Cost       Cost          `json:"cost"`
	Generator  Generator     `json:"generator"`
	Phases     []Phase       `json:"phases,omitempty"` // nil = the load is constant
	Windows    []FaultWindow `json:"fault_windows,omitempty"`
	// Availability is nil in old runs and for services.
	Availability *Availability `json:"availability,omitempty"`
	// Roles lists the role changes of the servers in order of time.
	Roles    []RoleChange      `json:"roles,omitempty"`
	Errors   map[string]int64  `json:"errors"`                // operations that were not OK, by "kind outcome reason"
	Said     map[string]string `json:"errors_said,omitempty"` // the first error text of some of these kinds
	Verdicts []checker.Verdict `json:"verdicts"`
	// Certified lists the certified verdicts; empty = no certificate was checked.
	Certified string `json:"certified,omitempty"`

	Driver *Driver         `json:"driver,omitzero"`  // for a lock in an external program
	Fleet  *Fleet          `json:"fleet,omitzero"`   // for workers on several machines
	Stream *history.Stream `json:"stream,omitempty"` // nil = no replication stream was read

	Settings    map[string]string `json:"settings"`       // settings of the servers
	Client      map[string]string `json:"client_options"` // options of the locks' Redis clients
	Environment Environment       `json:"environment"`
}

type Config struct {
	Workers    int     `json:"workers"`
	Processes  int     `json:"processes"`
	Keys       int     `json:"keys"`
	Burst      int     `json:"burst,omitempty"` // all visits are due together, this many; 0 = a steady load
	Popularity string  `json:"popularity"`
	Rate       float64 `json:"rate_per_s"` // visits per second; 0 = closed loop
	Spread     string  `json:"arrival_spread"`
	Seed       uint64  `json:"seed"`
	TTL        int64   `json:"ttl_ns"`
	Hold       int64   `json:"hold_ns"`
	Term       int64   `json:"term_ns,omitempty"` // time for which a visit counts repeatedly; 0 = once
	Think      int64   `json:"think_ns"`
	Wait       int64   `json:"wait_ns"`
	Retry      int64   `json:"retry_ns"`
	Warmup     int64   `json:"warmup_ns"`
	Duration   int64   `json:"duration_ns"`
	Measured   int64   `json:"measured_ns"` // shorter than the planned duration if the run ended early
}

// Arrivals counts the visits in an open loop's schedule over the whole run: due = begun + skipped + unfinished.
type Arrivals struct {
	Due        int64 `json:"due"`
	Begun      int64 `json:"begun"`
	Skipped    int64 `json:"skipped"`    // the visit's patience ended before a worker was free
	Unfinished int64 `json:"unfinished"` // the visit was still waiting for a worker at the end of the run
}

// Visits counts the visits that were due within the measurement, by their ends.
type Visits struct {
	Begun   int64 `json:"begun"`
	Done    int64 `json:"done"`    // the visit's store was acknowledged
	Timeout int64 `json:"timeout"` // the visit gave up waiting for the lock
	Failed  int64 `json:"failed"`  // the visit was certainly not counted, for another reason
	Unknown int64 `json:"unknown"` // the visit may have been counted
	Skipped int64 `json:"skipped"` // the visit's patience ended before a worker was free
}

// Views compares the counter with the acknowledged page views, over the whole run.
type Views struct {
	Acknowledged int64 `json:"acknowledged"`
	Unknown      int64 `json:"unknown"`
	Final        int64 `json:"final"`
	Lost         int64 `json:"lost"`
	Fenced       int64 `json:"fenced"` // stores, and loads before them, rejected because of an old fencing token
	// Doubt names faults that may have changed the totals although the lock is correct. Excused is the largest number
	// of views that these faults can have lost.
	Doubt   string `json:"doubt,omitempty"`
	Excused int64  `json:"excused,omitempty"`
	Unread  bool   `json:"unread,omitempty"`  // the counter could not be read at the end
	Missing bool   `json:"missing,omitempty"` // the totals lack the visits of lost machines
}

type Latencies struct {
	Acquire Percentiles `json:"acquire"` // from the first try to the grant, for visits that were granted the lock
	// from the due time of a visit to its end, for counted visits
	Response Percentiles `json:"response"`
	Hold     Percentiles `json:"hold"` // from the grant to the call of Release
	Release  Percentiles `json:"release"`
	// Handoff is from the call of Release to the grant to a worker that was already waiting.
	Handoff Percentiles `json:"handoff"`
	Try     Percentiles `json:"try"` // each single try, granted or refused
}

// Swing is the variation of a run from second to second. A smaller difference between two runs is noise.
type Swing struct {
	Acquire [2]int64   `json:"acquire_p50_ns"` // smallest and largest median of a second; 0 = no visits
	Visits  [2]float64 `json:"visits_per_s"`   // smallest and largest number of successful visits in a second
}

// Waiting has the waits for the lock, including those without a grant.
type Waiting struct {
	// Unfinished estimates the length of a wait for the lock, including waits that timed out or did not end. A
	// percentile is Beyond if it cannot be estimated, because too many waits were unfinished.
	Unfinished Percentiles `json:"acquire_with_unfinished"`
	Censored   int64       `json:"unfinished"` // number of waits without a grant within the measurement
	Longest    int64       `json:"longest_ns"`
	// Response is the same estimate for the time from a visit's due time to its end.
	Response Percentiles `json:"response_with_unfinished"`
	// RandomWaiter is for a worker that is waiting at a random moment. It is the length of that worker's whole wait.
	RandomWaiter Percentiles `json:"random_waiter"`
	// Woken has the tries and hand-offs for each kind of wake-up; nil in old runs.
	Woken []Woken `json:"woken,omitempty"`
}

// Woken counts the tries after one kind of wake-up, and their grants.
type Woken struct {
	By      string      `json:"by"`      // kind of wake-up: a name of history.Wake
	Tries   int64       `json:"tries"`   // tries of visits that were due within the measurement
	Grants  int64       `json:"grants"`  // tries among them that were granted
	Handoff Percentiles `json:"handoff"` // hand-offs to a worker that was woken in this way
}

// StarvingShare is the part of its fair share below which a worker is starving.
const StarvingShare = 0.1

// Fairness is how the workers shared the lock.
type Fairness struct {
	// Jain is Jain's index (DEC-TR-301, 1984) of the workers' counted visits: 1 if all workers have equally many, 1/n
	// if one worker has all.
	Jain            float64 `json:"jain"`
	Starving        int     `json:"starving"`
	StarvingWorkers []int   `json:"starving_workers"`
	// Worst is the worker with the fewest visits; among several, the one with the longest wait.
	Worst Worker `json:"worst_worker"`
	// IdleShare is the time for which the lock was free although a worker waited. It is a share of the time in which
	// the lock was held or a worker waited for it. Null if the lock does not claim mutual exclusion.
	IdleShare *float64 `json:"idle_share"`
	// Workers has the results of all workers, by number; nil in old runs.
	Workers []Worker `json:"workers,omitempty"`
}

type Worker struct {
	Worker  int   `json:"worker"`
	Visits  int64 `json:"visits"`
	Mean    int64 `json:"mean_wait_ns"`    // unfinished waits count with their observed length
	Longest int64 `json:"longest_wait_ns"` // see Mean
}

// Cost is the mean cost of a counted visit. A number is null if it was not measured.
type Cost struct {
	RoundTrips *float64 `json:"round_trips"` // round trips of the locks' clients
	// commands that the locks' servers executed, including those in scripts and on replicas
	Commands  *float64 `json:"commands"`
	ServerCPU *float64 `json:"server_cpu_ns"` // CPU time of the locks' servers
}

// GeneratorState is how far the load generator can be trusted.
type GeneratorState string

const (
	GeneratorOK GeneratorState = "OK"
	Suspect     GeneratorState = "SUSPECT"
	Saturated   GeneratorState = "SATURATED" // the suite itself used up the CPU
	Disturbed   GeneratorState = "DISTURBED" // other programs used up the CPU
)

// Unfit tells whether measured times depend on the machine as much as on the lock.
func (s GeneratorState) Unfit() bool { return s == Saturated || s == Disturbed }

// Generator is the load generator's judgement about itself.
type Generator struct {
	State   GeneratorState `json:"state"`
	Reasons []string       `json:"reasons"`
	Usage
	LateP99 int64 `json:"late_p99_ns"` // p99 of the delay with which visits of an open loop began
	LateMax int64 `json:"late_max_ns"`
}

// Usage is the load generator's use of this machine during the measurement.
type Usage struct {
	OpenLoop      bool    `json:"open_loop"`
	OwnCPU        float64 `json:"own_cpu"`     // share of the cores that this process may use
	MachineCPU    float64 `json:"machine_cpu"` // share of all cores; negative = unknown
	StolenCPU     float64 `json:"stolen_cpu"`  // share of all cores that the hypervisor took; negative = unknown
	OthersCPU     float64 `json:"others_cpu"`  // share of all cores that other programs used; negative = unknown
	GCPauseMax    int64   `json:"gc_pause_max_ns"`
	SchedulingP99 int64   `json:"scheduling_p99_ns"` // p99 of the time for which a runnable goroutine waited for a core
	PoolWaits     int64   `json:"pool_waits"`        // number of times that a worker waited for a connection
	Stalls        int64   `json:"stalls"`            // number of times that a worker waited until it could record
}

// FaultWindow is the time in which a planned fault was active. Times count from the start of the run. A time that
// never came is history.Forever.
type FaultWindow struct {
	Fault    int64         `json:"fault"`       // index of the fault in Run.Faults
	From     time.Duration `json:"from_ns"`     // beginning of the injection
	Injected time.Duration `json:"injected_ns"` // end of the injection
	Healing  time.Duration `json:"healing_ns"`  // call of the Heal
	To       time.Duration `json:"to_ns"`       // time at which everything was healthy again
	Failed   bool          `json:"failed,omitempty"`
	Held     int           `json:"held,omitempty"` // number of holds at the injection
}

// Environment describes the machine and the versions of a run.
type Environment struct {
	Suite  string `json:"suite"`
	Go     string `json:"go"`
	OS     string `json:"os"`
	Kernel string `json:"kernel"`
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Procs  int    `json:"gomaxprocs"`
	Memory int64  `json:"memory_bytes"`
}
