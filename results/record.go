// Package results defines the record of a run: its measurements and verdicts. It writes records as text, as JSON,
// for CI systems, and into the directory of a saved run.
package results

import (
	"time"

	"hammerlock/checker"
	"hammerlock/history"
)

// schemaVersion is the version of the JSON format. New fields do not change it, but renamed fields and new units do.
const schemaVersion = 1

// Run is the record of one run. Durations are in nanoseconds.
type Run struct {
	Schema  int       `json:"schema"` // schemaVersion of the program that wrote the record; 0 in old records
	Name    string    `json:"name"`
	Started time.Time `json:"started"`
	Partial string    `json:"partial,omitempty"` // why the run ended early; empty = it did not
	// Interactive means that a user changed the run with the keyboard. Then assertions are not checked, and the
	// history has each change.
	Interactive bool   `json:"interactive,omitempty"`
	Aborted     string `json:"aborted,omitempty"` // the assertion that ended the run early; empty = none
	// Before lists the reasons why earlier attempts were repeated; each one made an attempt inconclusive.
	Before  []string `json:"attempts_before,omitempty"`
	Earlier []string `json:"attempts_saved,omitempty"` // names of those attempts, which this run replaces
	// Stretched is the factor by which all times are longer than planned. They are longer if the machine was too
	// slow for an earlier attempt, or if the program needs longer leases; 0 = they are as planned.
	Stretched int    `json:"stretched,omitempty"`
	Took      int64  `json:"took_ns,omitempty"`  // total time, including the start of servers and the judgement
	Recorded  bool   `json:"recorded,omitempty"` // HistoryFile has every operation
	Explored  bool   `json:"explored,omitempty"` // the run is an exploration: many schedules in virtual time
	Label     string `json:"label,omitempty"`    // a warning that concerns all numbers of the run
	Command   string `json:"command"`            // the command that repeats the run

	Topology string `json:"topology"`
	Lock     string `json:"lock"`
	Scenario string `json:"scenario,omitempty"` // empty = no scenario
	Strains  string `json:"strains,omitempty"`  // in words, the part of the lock that the scenario tests hardest
	// Class is one of scenarios.Classes, the kinds of scenarios; empty = none.
	Class   string `json:"class,omitempty"`
	Service string `json:"service,omitempty"` // how a service under test was called; empty = no service
	// Wire describes the traffic of an observed program; empty = the suite's own workers made the load.
	Wire    string   `json:"wire,omitempty"`
	Seen    []Fact   `json:"seen,omitempty"`  // observations that are no violations
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
	// Roles lists the changes of the servers' roles in the order of time.
	Roles    []RoleChange      `json:"roles,omitempty"`
	Errors   map[string]int64  `json:"errors"`                // operations that were not OK, by "kind outcome reason"
	Said     map[string]string `json:"errors_said,omitempty"` // first error text, for some of the keys of Errors
	Verdicts []checker.Verdict `json:"verdicts"`
	// Certified says which verdicts were certified; empty = the proofs were not checked.
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
	Burst      int     `json:"burst,omitempty"` // this many visits are due at the same moment; 0 = a steady load
	Popularity string  `json:"popularity"`
	Rate       float64 `json:"rate_per_s"` // visits per second; 0 = closed loop
	Spread     string  `json:"arrival_spread"`
	Seed       uint64  `json:"seed"`
	TTL        int64   `json:"ttl_ns"`
	Hold       int64   `json:"hold_ns"`
	Term       int64   `json:"term_ns,omitempty"` // how long a visit goes on counting; 0 = it counts once
	Think      int64   `json:"think_ns"`
	Wait       int64   `json:"wait_ns"`
	Retry      int64   `json:"retry_ns"`
	Warmup     int64   `json:"warmup_ns"`
	Duration   int64   `json:"duration_ns"`
	Measured   int64   `json:"measured_ns"` // shorter than the planned duration if the run ended early
}

// Arrivals counts the visits that were due in an open loop, during the whole run. Due is the sum of the others.
type Arrivals struct {
	Due        int64 `json:"due"`
	Begun      int64 `json:"begun"`
	Skipped    int64 `json:"skipped"`    // no worker was free before the visit's patience ended
	Unfinished int64 `json:"unfinished"` // no worker was free before the run ended
}

// Visits counts the visits that were due during the measurement, by how they ended.
type Visits struct {
	Begun   int64 `json:"begun"`
	Done    int64 `json:"done"`    // the visit's store was acknowledged
	Timeout int64 `json:"timeout"` // the visit gave up waiting for the lock
	Failed  int64 `json:"failed"`  // the visit was certainly not counted, for another reason
	Unknown int64 `json:"unknown"` // the visit may have been counted
	Skipped int64 `json:"skipped"` // no worker was free before the visit's patience ended
}

// Views compares the page views in the counter with those that were acknowledged, for the whole run.
type Views struct {
	Acknowledged int64 `json:"acknowledged"`
	Unknown      int64 `json:"unknown"`
	Final        int64 `json:"final"`
	Lost         int64 `json:"lost"`
	Fenced       int64 `json:"fenced"` // loads and stores that were refused because of an old fencing token
	// Doubt names the faults that may have lost page views even with a correct lock. Excused is the largest number
	// of page views that they can have lost.
	Doubt   string `json:"doubt,omitempty"`
	Excused int64  `json:"excused,omitempty"`
	Unread  bool   `json:"unread,omitempty"`  // the counter could not be read at the end
	Missing bool   `json:"missing,omitempty"` // the visits of lost machines are missing
}

type Latencies struct {
	Acquire Percentiles `json:"acquire"` // from the first try to the grant; only visits that got the lock
	// From the time at which a visit was due to its end; only visits that were counted.
	Response Percentiles `json:"response"`
	Hold     Percentiles `json:"hold"` // from the grant to the call of Release
	Release  Percentiles `json:"release"`
	// Handoff is the time from the call of Release to the next grant, if a worker was waiting at the release.
	Handoff Percentiles `json:"handoff"`
	Try     Percentiles `json:"try"` // each single try, granted or refused
}

// Swing says how much the seconds of a run differ from each other. If two runs differ by less, this may be noise.
type Swing struct {
	Acquire [2]int64   `json:"acquire_p50_ns"` // smallest and largest p50 of a single second; 0 = no visits
	Visits  [2]float64 `json:"visits_per_s"`   // smallest and largest number of counted visits in a second
}

// Waiting has the waits for the lock, also those that ended without a grant.
type Waiting struct {
	// Unfinished estimates how long a wait takes, also from waits that timed out or did not end during the
	// measurement. A percentile is Beyond if too many waits did so.
	Unfinished Percentiles `json:"acquire_with_unfinished"`
	Censored   int64       `json:"unfinished"` // number of waits that did not end with a grant during the measurement
	Longest    int64       `json:"longest_ns"`
	// Response estimates in the same way the time from a visit's due time to its end.
	Response Percentiles `json:"response_with_unfinished"`
	// RandomWaiter is the whole wait of a worker that is waiting at a random moment. Long waits weigh more here,
	// because a random moment is more often in a long wait.
	RandomWaiter Percentiles `json:"random_waiter"`
	// Woken has one element for each kind of wake-up, the event that made a waiting worker try again; nil in old
	// runs.
	Woken []Woken `json:"woken,omitempty"`
}

// Woken counts the tries that followed one kind of wake-up.
type Woken struct {
	By      string      `json:"by"`      // kind of wake-up: a name of history.Wake
	Tries   int64       `json:"tries"`   // for visits that were due during the measurement
	Grants  int64       `json:"grants"`  // how many of these tries were granted
	Handoff Percentiles `json:"handoff"` // hand-offs to a worker that was woken in this way
}

// StarvingShare is the limit for starvation: a worker starves if it gets less than this part of its fair share.
const StarvingShare = 0.1

// Fairness says how evenly the workers got the lock.
type Fairness struct {
	// Jain is Jain's index (DEC-TR-301, 1984) of the numbers of counted visits of the n workers. It is 1 if all
	// workers have equally many, and 1/n if one worker has all.
	Jain            float64 `json:"jain"`
	Starving        int     `json:"starving"`
	StarvingWorkers []int   `json:"starving_workers"`
	// Worst is the worker with the fewest visits. If several have the fewest, it is the one with the longest wait.
	Worst Worker `json:"worst_worker"`
	// IdleShare is the share of the time for which the lock was free although a worker waited. 100 % is the time in
	// which the lock was held or a worker waited. Null = the lock does not claim mutual exclusion.
	IdleShare *float64 `json:"idle_share"`
	// Workers has the results of all workers, by worker number; nil in old runs.
	Workers []Worker `json:"workers,omitempty"`
}

type Worker struct {
	Worker  int   `json:"worker"`
	Visits  int64 `json:"visits"`
	Mean    int64 `json:"mean_wait_ns"`    // waits that did not end count with their length so far
	Longest int64 `json:"longest_wait_ns"` // see Mean
}

// Cost is the mean cost of a counted visit; null = not measured.
type Cost struct {
	RoundTrips *float64 `json:"round_trips"` // round trips of the locks' clients
	// Commands that the servers executed, including those in scripts and those on replicas.
	Commands  *float64 `json:"commands"`
	ServerCPU *float64 `json:"server_cpu_ns"` // CPU time of the locks' servers
}

// GeneratorState says whether the load generator was fast enough for its measurements to be trusted.
type GeneratorState string

const (
	GeneratorOK GeneratorState = "OK"
	Suspect     GeneratorState = "SUSPECT"
	Saturated   GeneratorState = "SATURATED" // this suite used up the CPU
	Disturbed   GeneratorState = "DISTURBED" // other programs used up the CPU
)

// Unfit reports whether the machine was so busy that measured times say little about the lock.
func (s GeneratorState) Unfit() bool { return s == Saturated || s == Disturbed }

// Generator says how well the load generator worked, by its own judgement.
type Generator struct {
	State   GeneratorState `json:"state"`
	Reasons []string       `json:"reasons"`
	Usage
	LateP99 int64 `json:"late_p99_ns"` // p99 of the delay with which visits of an open loop began
	LateMax int64 `json:"late_max_ns"`
}

// Usage says how busy this machine was during the measurement.
type Usage struct {
	OpenLoop      bool    `json:"open_loop"`
	OwnCPU        float64 `json:"own_cpu"`     // share of the cores that this process may use
	MachineCPU    float64 `json:"machine_cpu"` // share of all cores; negative = unknown
	StolenCPU     float64 `json:"stolen_cpu"`  // share of all cores that the hypervisor took; negative = unknown
	OthersCPU     float64 `json:"others_cpu"`  // share of all cores that other programs used; negative = unknown
	GCPauseMax    int64   `json:"gc_pause_max_ns"`
	SchedulingP99 int64   `json:"scheduling_p99_ns"` // p99 of the time for which runnable goroutines waited for a core
	PoolWaits     int64   `json:"pool_waits"`        // how often a worker waited for a free connection
	Stalls        int64   `json:"stalls"`            // how often a worker had to wait before it could record
}

// FaultWindow is the period in which a planned fault was active. Times count from the start of the run;
// history.Forever = the event did not happen.
type FaultWindow struct {
	Fault    int64         `json:"fault"`       // index of the fault in Run.Faults
	From     time.Duration `json:"from_ns"`     // beginning of the injection
	Injected time.Duration `json:"injected_ns"` // end of the injection
	Healing  time.Duration `json:"healing_ns"`  // when the healing began
	To       time.Duration `json:"to_ns"`       // when everything was healthy again
	Failed   bool          `json:"failed,omitempty"`
	Held     int           `json:"held,omitempty"` // number of locks held at the injection
}

// Environment describes the machine of a run, and the versions of the programs.
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
