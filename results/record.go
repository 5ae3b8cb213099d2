// Package results holds what is kept and shown of a run: what was measured, the verdicts, the environment; as a
// table, as JSON, and as files of a saved run. It makes no measurement by itself but of what it is shown.
package results

import (
	"time"

	"hammerlock/checker"
)

// Schema is the version of the JSON document.
const Schema = 1

// Document is what --json prints: all runs of a command and how it ended.
type Document struct {
	Schema int          `json:"schema"`
	Exit   Exit         `json:"exit"`
	Runs   []Run        `json:"runs"`
	Gates  []GateResult `json:"gates,omitempty"`
}

// Exit says how a command ended.
type Exit struct {
	Code   int    `json:"code"`
	Reason string `json:"reason"`
}

// Run is everything that is kept of one run. Durations are in nanoseconds.
type Run struct {
	Name    string    `json:"name"`
	Started time.Time `json:"started"`
	Partial string    `json:"partial,omitempty"` // why the run ended early; empty if it did not
	// Interactive says that a person has meddled by key: the history names what was done, gates decide nothing.
	Interactive bool   `json:"interactive,omitempty"`
	Label       string `json:"label,omitempty"` // what to keep in mind about every number in it
	Command     string `json:"command"`         // repeats the run

	Topology string   `json:"topology"`
	Lock     string   `json:"lock"`
	Counter  string   `json:"counter_store"`
	Faults   []string `json:"faults"`
	Config

	Arrivals   Arrivals          `json:"arrivals"` // open loop: the whole run
	Visits     Visits            `json:"visits"`
	Views      Views             `json:"counter"`
	Latency    Latencies         `json:"latency"`
	Waiting    Waiting           `json:"waiting"`
	Throughput float64           `json:"throughput_per_s"`
	Fairness   Fairness          `json:"fairness"`
	Cost       Cost              `json:"cost"`
	Generator  Generator         `json:"generator"`
	Windows    []FaultWindow     `json:"fault_windows,omitempty"`
	Errors     map[string]int64  `json:"errors"` // operations that did not go well: "kind outcome reason"
	Verdicts   []checker.Verdict `json:"verdicts"`

	Settings    map[string]string `json:"settings"`       // of the servers
	Client      map[string]string `json:"client_options"` // of the clients that locks use
	Environment Environment       `json:"environment"`
}

// Config is the load of a run.
type Config struct {
	Workers    int     `json:"workers"`
	Processes  int     `json:"processes"`
	Keys       int     `json:"keys"`
	Popularity string  `json:"popularity"`
	Rate       float64 `json:"rate_per_s"` // 0 = closed loop
	Spread     string  `json:"arrival_spread"`
	Seed       uint64  `json:"seed"`
	TTL        int64   `json:"ttl_ns"`
	Hold       int64   `json:"hold_ns"`
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

// Views compares the counter with what was acknowledged, over the whole run.
type Views struct {
	Acknowledged int64 `json:"acknowledged"`
	Unknown      int64 `json:"unknown"`
	Final        int64 `json:"final"`
	Lost         int64 `json:"lost"`
	Fenced       int64 `json:"fenced"` // stale stores that a fenced counter refused
}

// Latencies are the distributions of a run.
type Latencies struct {
	Acquire  Percentiles `json:"acquire"`
	Response Percentiles `json:"response"`
	Hold     Percentiles `json:"hold"`
	Release  Percentiles `json:"release"`
	Handoff  Percentiles `json:"handoff"`
	Try      Percentiles `json:"try"`
}

// Waiting is what the percentiles of the winners hide.
type Waiting struct {
	// Unfinished estimates how long a wait for the lock takes, timed-out and unfinished waits included. A
	// percentile that was not reached, because too many waits had no end, is -1: more than Longest.
	Unfinished Percentiles `json:"acquire_with_unfinished"`
	Censored   int64       `json:"unfinished"` // waits without a grant within the measurement
	Longest    int64       `json:"longest_ns"`
	// Response is as Unfinished, for the time from when a visit was due to its end.
	Response Percentiles `json:"response_with_unfinished"`
	// RandomWaiter is the length of the wait that somebody is in who waits at a random instant.
	RandomWaiter Percentiles `json:"random_waiter"`
	// Woken splits tries and hand-offs by what made the worker try; nil in runs saved before it was kept.
	Woken []Woken `json:"woken,omitempty"`
}

// Cost is what a counted visit took, on average; null if it was not measured.
type Cost struct {
	RoundTrips *float64 `json:"round_trips"`   // of the lock's clients
	Commands   *float64 `json:"commands"`      // executed by the lock's servers, in scripts and on replicas as well
	ServerCPU  *float64 `json:"server_cpu_ns"` // of the lock's servers
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

// Summarize fills in what the meter measured.
func (m *Meter) Summarize(r *Run, load Load) {
	r.Measured = int64(max(m.to-m.from, 0))
	r.Visits = m.Visits
	r.Latency = Latencies{
		Acquire: m.Acquire.Summary(), Response: m.Response.Summary(), Hold: m.Hold.Summary(),
		Release: m.Release.Summary(), Handoff: m.Handoff.Summary(), Try: m.Tries.Summary(),
	}
	r.Waiting = m.waiting()
	if r.Measured > 0 {
		r.Throughput = float64(m.Finished()) / time.Duration(r.Measured).Seconds()
	}
	r.Fairness = m.fairness()
	r.Generator = m.judge(load)
	r.Errors = m.Errors
	r.Windows = m.faults
}

func (m *Meter) waiting() Waiting {
	w := Waiting{Censored: m.Waits.censored.count, Longest: int64(m.Waits.longest()), Woken: m.wokenBy()}
	w.Unfinished, w.RandomWaiter = m.Waits.unfinished(), m.Waits.randomWaiter()
	w.Response = m.Answers.unfinished()
	return w
}
