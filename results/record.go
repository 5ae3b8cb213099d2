// Package results holds what is kept of a run: the record, the verdicts and the readings of its metrics, as tables,
// as JSON, for CI systems and in the files of a saved run. It measures nothing and compares nothing.
package results

import (
	"time"

	"hammerlock/checker"
	"hammerlock/history"
)

// schemaVersion is the version of the record. Fields may be added without a new one; those that are there keep names
// and units.
const schemaVersion = 1

// Run is everything that is kept of one run. Durations are in nanoseconds.
type Run struct {
	Schema  int       `json:"schema"` // schemaVersion of whoever wrote it; 0 in runs saved before it was kept
	Name    string    `json:"name"`
	Started time.Time `json:"started"`
	Partial string    `json:"partial,omitempty"` // why the run ended early; empty if it did not
	// Interactive says that the run was changed by key: the history names what was done, gates decide nothing.
	Interactive bool   `json:"interactive,omitempty"`
	Aborted     string `json:"aborted,omitempty"` // the gate that ended the run early; empty if none did
	// Before says why each attempt at this run before it was inconclusive: something unplanned had hit it.
	Before  []string `json:"attempts_before,omitempty"`
	Earlier []string `json:"attempts_saved,omitempty"` // the names of these runs, in whose place this one stands
	// so many times longer than planned are all its times: the machine was slow before, or its leases would be too
	// short for the program
	Stretched int    `json:"stretched,omitempty"`
	Took      int64  `json:"took_ns,omitempty"`  // all of it: servers that start, load and judgement
	Recorded  bool   `json:"recorded,omitempty"` // every operation is kept, in HistoryFile
	Explored  bool   `json:"explored,omitempty"` // of many schedules in virtual time, not one run
	Label     string `json:"label,omitempty"`    // what to keep in mind about every number in it
	Command   string `json:"command"`            // repeats the run

	Topology string `json:"topology"`
	Lock     string `json:"lock"`
	Scenario string `json:"scenario,omitempty"` // empty if the run was none of a catalogue
	Strains  string `json:"strains,omitempty"`  // what the scenario strains, in words
	// of scenarios that strain the same, such as late holders; empty if it is of none
	Class   string `json:"class,omitempty"`
	Service string `json:"service,omitempty"` // how a service was visited that locks by itself; empty if locks were
	// what was seen on the wire, in words; empty if the suite's own workers made the load
	Wire    string   `json:"wire,omitempty"`
	Seen    []Fact   `json:"seen,omitempty"`  // what else was seen there, and of the program, that is no violation
	Locks   *Locks   `json:"locks,omitempty"` // the numbers of the locks of a program that was watched
	Counter string   `json:"counter_store"`
	Faults  []string `json:"faults"`
	Config

	Arrivals   Arrivals      `json:"arrivals"` // open loop: the whole run
	Visits     Visits        `json:"visits"`
	Views      Views         `json:"counter"`
	Latency    Latencies     `json:"latency"`
	Waiting    Waiting       `json:"waiting"`
	Throughput float64       `json:"throughput_per_s"`
	Swing      Swing         `json:"swing"`
	Fairness   Fairness      `json:"fairness"`
	Cost       Cost          `json:"cost"`
	Generator  Generator     `json:"generator"`
	Phases     []Phase       `json:"phases,omitempty"` // one after the other; nil if the load stays the same
	Windows    []FaultWindow `json:"fault_windows,omitempty"`
	// Availability is nil in runs saved before it was kept, and of services.
	Availability *Availability `json:"availability,omitempty"`
	// Roles are what servers became while the run went on, in that order.
	Roles    []RoleChange      `json:"roles,omitempty"`
	Errors   map[string]int64  `json:"errors"`                // operations that were not OK, by "kind outcome reason"
	Said     map[string]string `json:"errors_said,omitempty"` // what the first of some of them said
	Verdicts []checker.Verdict `json:"verdicts"`
	// Certified says in words which verdicts are certified; empty if no certificate was checked.
	Certified string `json:"certified,omitempty"`

	Driver *Driver         `json:"driver,omitzero"`  // of a lock that lives in a program of its own
	Fleet  *Fleet          `json:"fleet,omitzero"`   // of workers on several machines
	Stream *history.Stream `json:"stream,omitempty"` // nil = no replication stream was read

	Settings    map[string]string `json:"settings"`       // of the servers
	Client      map[string]string `json:"client_options"` // of the clients that locks use
	Environment Environment       `json:"environment"`
}

// Config is the workload of a run.
type Config struct {
	Workers    int     `json:"workers"`
	Processes  int     `json:"processes"`
	Keys       int     `json:"keys"`
	Burst      int     `json:"burst,omitempty"` // so many visits at once and no more; 0 = a load
	Popularity string  `json:"popularity"`
	Rate       float64 `json:"rate_per_s"` // 0 = closed loop
	Spread     string  `json:"arrival_spread"`
	Seed       uint64  `json:"seed"`
	TTL        int64   `json:"ttl_ns"`
	Hold       int64   `json:"hold_ns"`
	Term       int64   `json:"term_ns,omitempty"` // a visit counts again and again for so long; 0 = once
	Think      int64   `json:"think_ns"`
	Wait       int64   `json:"wait_ns"`
	Retry      int64   `json:"retry_ns"`
	Warmup     int64   `json:"warmup_ns"`
	Duration   int64   `json:"duration_ns"`
	Measured   int64   `json:"measured_ns"` // shorter than the duration if the run ended early
}

// Arrivals counts the visits of an open loop's schedule over the whole run: due = begun + skipped + unfinished.
type Arrivals struct {
	Due        int64 `json:"due"`
	Begun      int64 `json:"begun"`
	Skipped    int64 `json:"skipped"`    // patience ended before a worker was free
	Unfinished int64 `json:"unfinished"` // still waited for a worker when the run ended
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

// Views compares the counter with the acknowledged page views, over the whole run.
type Views struct {
	Acknowledged int64 `json:"acknowledged"`
	Unknown      int64 `json:"unknown"`
	Final        int64 `json:"final"`
	Lost         int64 `json:"lost"`
	Fenced       int64 `json:"fenced"` // stale stores that a fenced counter refused, and loads before them
	// Doubt is what may have changed the sums and no lock answers for, Excused how many views that can have cost at
	// most.
	Doubt   string `json:"doubt,omitempty"`
	Excused int64  `json:"excused,omitempty"`
	Unread  bool   `json:"unread,omitempty"`  // nobody could read the counter at the end
	Missing bool   `json:"missing,omitempty"` // visits of machines that were lost are not in the sums
}

// Latencies are the distributions of a run.
type Latencies struct {
	Acquire  Percentiles `json:"acquire"`  // from the first try to the grant, granted visits only
	Response Percentiles `json:"response"` // from when the visit was due to its end, counted visits only
	Hold     Percentiles `json:"hold"`     // from the grant to the call of the release
	Release  Percentiles `json:"release"`
	// from the release's call to the grant of another worker that was waiting by then
	Handoff Percentiles `json:"handoff"`
	Try     Percentiles `json:"try"` // each try by itself, granted or not
}

// Swing is how far a run's own seconds differ. A smaller difference between two runs is noise.
type Swing struct {
	Acquire [2]int64   `json:"acquire_p50_ns"` // the smallest and the greatest of a second; 0 = no visits
	Visits  [2]float64 `json:"visits_per_s"`   // the fewest and the most visits that ended well in a second
}

// Waiting is what the percentiles of the winners hide.
type Waiting struct {
	// Unfinished estimates how long a wait for the lock takes, timed-out and unfinished waits included. A
	// percentile that was not reached, because too many waits had no end, is Beyond.
	Unfinished Percentiles `json:"acquire_with_unfinished"`
	Censored   int64       `json:"unfinished"` // waits without a grant within the measurement
	Longest    int64       `json:"longest_ns"`
	// Response is as Unfinished, for the time from when a visit was due to its end.
	Response Percentiles `json:"response_with_unfinished"`
	// RandomWaiter is the length of the wait of a worker picked at a random moment.
	RandomWaiter Percentiles `json:"random_waiter"`
	// Woken splits tries and hand-offs by what made the worker try; nil in runs saved before it was kept.
	Woken []Woken `json:"woken,omitempty"`
}

// Woken says what came of the tries that one kind of wake-up made workers begin.
type Woken struct {
	By      string      `json:"by"`      // as history.Wake has it
	Tries   int64       `json:"tries"`   // of the visits that were due within the measurement
	Grants  int64       `json:"grants"`  // of these tries
	Handoff Percentiles `json:"handoff"` // to a worker that was woken so
}

// StarvingShare is the part of its fair share under which a worker starves.
const StarvingShare = 0.1

// Fairness says how the lock was shared among the workers.
type Fairness struct {
	// Jain is Jain's index of the workers' counted visits (DEC-TR-301, 1984): 1 if all had as many, 1/n if one had all.
	Jain            float64 `json:"jain"`
	Starving        int     `json:"starving"`
	StarvingWorkers []int   `json:"starving_workers"`
	Worst           Worker  `json:"worst_worker"` // with the fewest visits, of those the one with the longest wait
	// IdleShare is the part of the time in which the lock was held or waited for that it stood idle although
	// somebody waited. Null if the lock does not exclude.
	IdleShare *float64 `json:"idle_share"`
	// Workers are what all workers got, by number; nil in runs saved before it was kept.
	Workers []Worker `json:"workers,omitempty"`
}

// Worker is what one worker got.
type Worker struct {
	Worker  int   `json:"worker"`
	Visits  int64 `json:"visits"`
	Mean    int64 `json:"mean_wait_ns"`    // unfinished waits count with what was seen of them
	Longest int64 `json:"longest_wait_ns"` // as above
}

// Cost is what a counted visit took, on average; null if it was not measured.
type Cost struct {
	RoundTrips *float64 `json:"round_trips"`   // of the lock's clients
	Commands   *float64 `json:"commands"`      // executed by the lock's servers, in scripts and on replicas as well
	ServerCPU  *float64 `json:"server_cpu_ns"` // of the lock's servers
}

// GeneratorState is how far the load generator can be trusted.
type GeneratorState string

// The states.
const (
	GeneratorOK GeneratorState = "OK"
	Suspect     GeneratorState = "SUSPECT"
	Saturated   GeneratorState = "SATURATED" // the suite itself used up the machine
	Disturbed   GeneratorState = "DISTURBED" // other programs used it
)

// Unfit tells whether times that were measured are about the machine as much as about the lock.
func (s GeneratorState) Unfit() bool { return s == Saturated || s == Disturbed }

// Generator is the generator's judgement of itself.
type Generator struct {
	State   GeneratorState `json:"state"`
	Reasons []string       `json:"reasons"`
	Usage
	LateP99 int64 `json:"late_p99_ns"` // of the open loop's schedule
	LateMax int64 `json:"late_max_ns"`
}

// Usage is what the generator used of this machine during the measurement.
type Usage struct {
	OpenLoop      bool    `json:"open_loop"`
	OwnCPU        float64 `json:"own_cpu"`     // share of the cores this process may use
	MachineCPU    float64 `json:"machine_cpu"` // share of all cores; negative if unknown
	StolenCPU     float64 `json:"stolen_cpu"`  // share of all cores that the hypervisor took; negative if unknown
	OthersCPU     float64 `json:"others_cpu"`  // share of all cores that other programs used; negative if unknown
	GCPauseMax    int64   `json:"gc_pause_max_ns"`
	SchedulingP99 int64   `json:"scheduling_p99_ns"` // goroutines that could run but did not
	PoolWaits     int64   `json:"pool_waits"`        // times a worker waited for a connection
	Stalls        int64   `json:"stalls"`            // times a worker waited to record
}

// FaultWindow is when a fault of the plan was in force. Times count from the start of the run; one that never came
// is history.Forever.
type FaultWindow struct {
	Fault    int64         `json:"fault"`       // its number in Run.Faults
	From     time.Duration `json:"from_ns"`     // the injection began
	Injected time.Duration `json:"injected_ns"` // it was done
	Healing  time.Duration `json:"healing_ns"`  // the heal was called
	To       time.Duration `json:"to_ns"`       // everything was healthy again
	Failed   bool          `json:"failed,omitempty"`
	Held     int           `json:"held,omitempty"` // holds that had begun by then, and had not ended
}

// Environment is where a run was made.
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
