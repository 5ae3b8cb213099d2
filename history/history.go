package history

import "time"

// History is everything that happened in a run.
type History struct {
	Header
	// Ops stand in the order of their returns; calls without a return come last.
	Ops []Op
	// Notes say in words what a Fault or Heal did.
	Notes map[ID]string
	// Partial says why the end is missing; empty for a history that is whole.
	Partial string
}

// Header is what a judge must know of a run besides its operations.
type Header struct {
	Name     string    `json:"name"`
	Started  time.Time `json:"started"`
	Command  string    `json:"command"` // repeats the run
	Topology string    `json:"topology"`
	Lock     string    `json:"lock"`

	Workers   int           `json:"workers"`
	Processes int           `json:"processes"`
	Keys      int           `json:"keys"`
	Retry     time.Duration `json:"retry_ns"` // mean backoff between two tries
	Wait      time.Duration `json:"wait_ns"`  // patience of a visit

	Sites   int    `json:"sites,omitempty"`   // independent sites that the lock stands on; 0 = one
	Counter string `json:"counter,omitempty"` // the page views' store; CounterOnTopology = what the lock stands on too
	Fenced  bool   `json:"fenced,omitempty"`  // the store refuses a fencing token smaller than one that it took

	Claims Claims `json:"claims"`
	Bounds Bounds `json:"bounds"`
	// Faults are those of the plan, then those that were injected beside it; Op.Value of a Fault counts them from 0.
	Faults []Injection `json:"faults"`
}

// CounterOnTopology is the Counter that shares its servers, and their faults, with the lock.
const CounterOnTopology = "topology"

// Claims are what a lock promises, and so what it is judged by.
type Claims struct {
	Excludes  bool `json:"excludes"`  // one holder at a time
	Expires   bool `json:"expires"`   // a hold ends by itself after the TTL
	Owned     bool `json:"owned"`     // only the owner can release, and it gets the correct answer
	Fences    bool `json:"fences"`    // every grant has a greater fencing token than any before
	Ordered   bool `json:"ordered"`   // waiters are served in the order in which they came
	Reentrant bool `json:"reentrant"` // a holder can acquire again
	Renews    bool `json:"renews"`    // a watchdog extends the lease until its holder releases or crashes
	Cleans    bool `json:"cleans"`    // nothing of a hold stays in the servers when it was released or refused
}

// Bounds are the errors that judges allow for times.
type Bounds struct {
	Slack time.Duration `json:"slack_ns"` // how much the clocks of two worker processes may differ; 0 within a process
	Rate  float64       `json:"rate"`     // by which share the servers' clocks may run faster or slower
	Round time.Duration `json:"round_ns"` // how much a server may round or freeze its clock
	// Recovery is how long clients may need to be served again after servers are healthy, or after one took the place of
	// another; 0 = not known.
	Recovery time.Duration `json:"recovery_ns,omitempty"`
	// Gap is how long a process may stand still before that is recorded as a Gap; 0 = it is not recorded.
	Gap time.Duration `json:"gap_ns,omitempty"`
}
