// Package results holds what is kept of a run: the record, the verdicts and the values of its metrics. It writes them
// as tables, as JSON, for CI systems, and to the files of a saved run. It measures nothing and compares nothing.
package results

import (
	"time"

	"hammerlock/checker"
	"hammerlock/history"
)

// schemaVersion is the version of the record. Fields may be added under one version; existing fields keep their names
// and units.
const schemaVersion = 1

// Run is the record of one run. Durations are in nanoseconds.
type Run struct {
	Schema  int       `json:"schema"` // schemaVersion of the program that wrote it; 0 in older runs
	Name    string    `json:"name"`
	Started time.Time `json:"started"`
	Partial string    `json:"partial,omitempty"` // why the run ended early; empty if it did not
	// Interactive means that a user changed the run by key: the history has each change, and gates decide nothing.
	Interactive bool   `json:"interactive,omitempty"`
	Aborted     string `json:"aborted,omitempty"` // the gate that ended the run early; empty otherwise
	// Before says why each earlier attempt at this run was inconclusive, because of an unplanned event.
	Before  []string `json:"attempts_before,omitempty"`
	Earlier []string `json:"attempts_saved,omitempty"` // the names of the runs that this one replaces
	// the factor of all its times: the machine was slow before, or the planned leases would be too short for the
	// program
	Stretched int    `json:"stretched,omitempty"`
	Took      int64  `json:"took_ns,omitempty"`  // total time, with the start of servers and the judgement
	Recorded  bool   `json:"recorded,omitempty"` // HistoryFile has every operation
	Explored  bool   `json:"explored,omitempty"` // it sums up many schedules in virtual time
	Label     string `json:"label,omitempty"`    // a warning that applies to every number in it
	Command   string `json:"command"`            // repeats the run

	Topology string `json:"topology"`
	Lock     string `json:"lock"`
	Scenario string `json:"scenario,omitempty"` // empty without a scenario
	Strains  string `json:"strains,omitempty"`  // the subject of the scenario, in words
	// class of scenarios with the same subject, such as late holders; empty without one
	Class   string `json:"class,omitempty"`
	Service string `json:"service,omitempty"` // how a service with its own locking was visited; empty without a service
	// what was seen on the wire, in words; empty if the suite's workers made the load
	Wire    string   `json:"wire,omitempty"`
	Seen    []Fact   `json:"seen,omitempty"`  // further observations of a program that are no violations
	Locks   *Locks   `json:"locks,omitempty"` // the numbers of a watched program's locks
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
	Phases     []Phase       `json:"phases,omitempty"` // in sequence; nil if the load does not change
	Windows    []FaultWindow `json:"fault_windows,omitempty"`
	// Availability is nil in older runs, and for services.
	Availability *Availability `json:"availability,omitempty"`
	// Roles lists the servers' changes of roles during the run, in order.
	Roles    []RoleChange      `json:"roles,omitempty"`
	Errors   map[string]int64  `json:"errors"`                // operations that were not OK, by "kind outcome reason"
	Said     map[string]string `json:"errors_said,omitempty"` // the first text of some of these errors
	Verdicts []checker.Verdict `json:"verdicts"`
	// Certified says which verdicts are certified; empty if no certificate was checked.
	Certified string `json:"certified,omitempty"`

	Driver *Driver         `json:"driver,omitzero"`  // a lock's own program
	Fleet  *Fleet          `json:"fleet,omitzero"`   // for workers on several machines
	Stream *history.Stream `json:"stream,omitempty"` // nil = no replication stream was read

	Settings    map[string]string `json:"settings"`       // of the servers
	Client      map[string]string `json:"client_options"` // options of the locks' clients
	Environment Environment       `json:"environment"`
}

// Config is the workload of a run.
type Config struct {
	Workers    int     `json:"workers"`
	Processes  int     `json:"processes"`
	Keys       int     `json:"keys"`
	Burst      int     `json:"burst,omitempty"` // this many visits at once and no more; 0 = a steady load
	Popularity string  `json:"popularity"`
	Rate       float64 `json:"rate_per_s"` // 0 = closed loop
	Spread     string  `json:"arrival_spread"`
	Seed       uint64  `json:"seed"`
	TTL        int64   `json:"ttl_ns"`
	Hold       int64   `json:"hold_ns"`
	Term       int64   `json:"term_ns,omitempty"` // a visit counts repeatedly for this long; 0 = once
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
	Skipped    int64 `json:"skipped"`    // visits whose patience ended before a worker was free
	Unfinished int64 `json:"unfinished"` // visits that still waited for a worker when the run ended
}

// Visits counts the visits that were due within the measurement.
type Visits struct {
	Begun   int64 `json:"begun"`
	Done    int64 `json:"done"`    // counted: the store was acknowledged
	Timeout int64 `json:"timeout"` // the visit gave up waiting for the lock
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
	Fenced       int64 `json:"fenced"` // stale stores that a fenced counter refused, and refused loads before them
	// Doubt names what may have changed the sums although the lock is right; Excused is the most views that this can
	// have cost.
	Doubt   string `json:"doubt,omitempty"`
	Excused int64  `json:"excused,omitempty"`
	Unread  bool   `json:"unread,omitempty"`  // the counter could not be read at the end
	Missing bool   `json:"missing,omitempty"` // the sums lack visits of lost machines
}

// Latencies are the distributions of a run.
type Latencies struct {
	Acquire  Percentiles `json:"acquire"`  // from the first try to the grant, granted visits only
	Response Percentiles `json:"response"` // from when the visit was due to its end, counted visits only
	Hold     Percentiles `json:"hold"`     // from the grant to the call of the release
	Release  Percentiles `json:"release"`
	// from the release's call to the grant of another worker that was already waiting
	Handoff Percentiles `json:"handoff"`
	Try     Percentiles `json:"try"` // each single try, granted or not
}

// Swing is the range of a run's own seconds. A smaller difference between two runs is noise.
type Swing struct {
	Acquire [2]int64   `json:"acquire_p50_ns"` // smallest and greatest value of a second; 0 = no visits
	Visits  [2]float64 `json:"visits_per_s"`   // the fewest and the most visits that ended well in a second
}

// Waiting has what the percentiles of the winners hide.
type Waiting struct {
	// Unfinished estimates how long a wait for the lock takes, including waits that timed out or did not end. A
	// percentile that was not reached, because too many waits had no end, is Beyond.
	Unfinished Percentiles `json:"acquire_with_unfinished"`
	Censored   int64       `json:"unfinished"` // waits without a grant within the measurement
	Longest    int64       `json:"longest_ns"`
	// Response is the same estimate for the time from when a visit was due to its end.
	Response Percentiles `json:"response_with_unfinished"`
	// RandomWaiter is the length of the wait of a worker picked at a random moment.
	RandomWaiter Percentiles `json:"random_waiter"`
	// Woken splits tries and hand-offs by what made the worker try; nil in older runs.
	Woken []Woken `json:"woken,omitempty"`
}

// Woken counts the tries after one kind of wake-up, and their results.
type Woken struct {
	By      string      `json:"by"`      // a name of history.Wake
	Tries   int64       `json:"tries"`   // tries of the visits that were due within the measurement
	Grants  int64       `json:"grants"`  // of these tries
	Handoff Percentiles `json:"handoff"` // hand-offs to a worker that was woken so
}

// StarvingShare is the part of its fair share under which a worker starves.
const StarvingShare = 0.1

// Fairness says how the lock was shared among the workers.
type Fairness struct {
	// Jain is Jain's index of the workers' counted visits (DEC-TR-301, 1984): 1 if all are equal, 1/n if one worker has
	// all.
	Jain            float64 `json:"jain"`
	Starving        int     `json:"starving"`
	StarvingWorkers []int   `json:"starving_workers"`
	// the worker with the fewest visits; among several, the one with the longest wait
	Worst Worker `json:"worst_worker"`
	// IdleShare is the share of idle time: no worker held the lock although one waited, relative to the time in which
	// the lock was held or waited for. Null if the lock does not exclude.
	IdleShare *float64 `json:"idle_share"`
	// Workers has the results of all workers, by number; nil in older runs.
	Workers []Worker `json:"workers,omitempty"`
}

// Worker has the results of one worker.
type Worker struct {
	Worker  int   `json:"worker"`
	Visits  int64 `json:"visits"`
	Mean    int64 `json:"mean_wait_ns"`    // unfinished waits count with their observed length
	Longest int64 `json:"longest_wait_ns"` // as above
}

// Cost is the mean cost of a counted visit; null if it was not measured.
type Cost struct {
	RoundTrips *float64 `json:"round_trips"`   // by the lock's clients
	Commands   *float64 `json:"commands"`      // by the lock's servers, including scripts and replicas
	ServerCPU  *float64 `json:"server_cpu_ns"` // CPU time of the lock's servers
}

// GeneratorState says how far the load generator can be trusted.
type GeneratorState string

// The states.
const (
	GeneratorOK GeneratorState = "OK"
	Suspect     GeneratorState = "SUSPECT"
	Saturated   GeneratorState = "SATURATED" // the suite itself used up the machine
	Disturbed   GeneratorState = "DISTURBED" // other programs used it
)

// Unfit tells whether measured times depend on the machine as much as on the lock.
func (s GeneratorState) Unfit() bool { return s == Saturated || s == Disturbed }

// Generator is the load generator's judgement of itself.
type Generator struct {
	State   GeneratorState `json:"state"`
	Reasons []string       `json:"reasons"`
	Usage
	LateP99 int64 `json:"late_p99_ns"` // against the open loop's schedule
	LateMax int64 `json:"late_max_ns"`
}

// Usage is the generator's use of this machine during the measurement.
type Usage struct {
	OpenLoop      bool    `json:"open_loop"`
	OwnCPU        float64 `json:"own_cpu"`     // share of the cores that this process may use
	MachineCPU    float64 `json:"machine_cpu"` // share of all cores; negative if unknown
	StolenCPU     float64 `json:"stolen_cpu"`  // share of all cores that the hypervisor took; negative if unknown
	OthersCPU     float64 `json:"others_cpu"`  // share of all cores that other programs used; negative if unknown
	GCPauseMax    int64   `json:"gc_pause_max_ns"`
	SchedulingP99 int64   `json:"scheduling_p99_ns"` // p99 of how long a runnable goroutine waited for a core
	PoolWaits     int64   `json:"pool_waits"`        // times a worker waited for a connection
	Stalls        int64   `json:"stalls"`            // times a worker waited to record
}

// FaultWindow is the time in which a planned fault was in force. Times count from the start of the run; a time that
// never came is history.Forever.
type FaultWindow struct {
	Fault    int64         `json:"fault"`       // its index in Run.Faults
	From     time.Duration `json:"from_ns"`     // the injection began
	Injected time.Duration `json:"injected_ns"` // it was done
	Healing  time.Duration `json:"healing_ns"`  // when the heal was called
	To       time.Duration `json:"to_ns"`       // when everything was healthy again
	Failed   bool          `json:"failed,omitempty"`
	Held     int           `json:"held,omitempty"` // holds in progress at the injection
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
