package history

import "time"

// History is everything that happened in a run.
type History struct {
	Header
	// Ops stand in the order of their returns; calls without a return come last. They lie in Space, if they were read
	// from a file.
	Ops   []Op
	Space Space
	// Notes say in words what a Fault or Heal did.
	Notes map[ID]string
	// Partial says why the end is missing; empty for a history that is whole.
	Partial string
	// Allowed says that whoever ran it had allowed that to be missing: what is there is judged as if it were whole.
	Allowed bool
}

// Header is what a judge must know of a run besides its operations.
type Header struct {
	Name     string    `json:"name"`
	Started  time.Time `json:"started"`
	Command  string    `json:"command"` // repeats the run
	Topology string    `json:"topology"`
	Lock     string    `json:"lock"`

	Workers   int           `json:"workers"`
	Callers   int           `json:"callers,omitempty"` // see Caller; 0 = each worker is one
	Processes int           `json:"processes"`
	Keys      int           `json:"keys"`
	Retry     time.Duration `json:"retry_ns"` // mean backoff between two tries
	Wait      time.Duration `json:"wait_ns"`  // patience of a visit

	Sites int `json:"sites,omitempty"` // independent sites that the lock stands on; 0 = one
	// servers of the topology; those with numbers from there on are the counter's. 0 = not known
	Nodes   int    `json:"nodes,omitempty"`
	Counter string `json:"counter,omitempty"` // the page views' store; CounterOnTopology = what the lock stands on too
	Fenced  bool   `json:"fenced,omitempty"`  // the store refuses a fencing token smaller than one that it took

	// Service says that a service was visited which locks by itself: each Store is one request, without a hold, and
	// Value is the count that its answer told, since the run began; 0 = it told none.
	Service bool `json:"service,omitempty"`

	// Wire says that the history was read from what programs and servers said to each other on the wire, and what could
	// not be seen there; empty if its workers recorded it.
	Wire string `json:"wire,omitempty"`

	// ServerErrors says that servers may answer errors that accuse no lock: others run them, and may have filled their
	// memory, or they stand in for Redis and lack commands.
	ServerErrors bool `json:"server_errors,omitempty"`

	// Session says that a hold ends with the connection it was granted on, and so when its holder dies.
	Session bool `json:"session,omitempty"`

	// NotAbout are checkers that the run is not about: where they find too little to judge, that leaves nothing
	// undecided.
	NotAbout []string `json:"aside,omitempty"`

	// Measured is known at the end only; nil = nothing was measured.
	Measured *Measured `json:"measured,omitempty"`

	Claims Claims `json:"claims"`
	Bounds Bounds `json:"bounds"`
	// Faults are those of the plan, then those that were injected beside it; Op.Value of a Fault counts them from 0.
	Faults []Injection `json:"faults"`
}

// Caller is the worker that made a call. A visit that takes several pages at once is a visit of each by a worker of its
// own: workers whose numbers differ by Callers are one.
func (h *Header) Caller(worker int32) int32 {
	if h.Callers == 0 || worker < 0 {
		return worker
	}
	return worker % int32(h.Callers)
}

// CounterOnTopology is the Counter that shares its servers, and their faults, with the lock.
const CounterOnTopology = "topology"

// The checkers that NotAbout can name.
const (
	Calls    = "calls"
	Client   = "client"
	Liveness = "liveness"
	Fairness = "fairness"
	Updates  = "lost-updates"
)

// Bounds are the errors that judges allow for times.
type Bounds struct {
	Agreement
	Rate  float64       `json:"rate"`     // by which share the servers' clocks may run faster or slower
	Round time.Duration `json:"round_ns"` // how much a server may round or freeze its clock
	// Recovery is how long clients may need to be served again after servers are healthy, or after one took the place
	// of another; 0 = not known.
	Recovery time.Duration `json:"recovery_ns,omitempty"`
	// Gap is how long a process may stand still before that is recorded as a Gap; 0 = it is not recorded.
	Gap time.Duration `json:"gap_ns,omitempty"`
	// Linger is how much longer than was asked for a lease may last, as one that is rounded up to seconds, or that ends
	// with a session. Holders may believe in what they are told of it.
	Linger time.Duration `json:"linger_ns,omitempty"`
	// Idle is how long a lock may be idle beyond what the run explains, for the machine's sake; 0 = a second.
	Idle time.Duration `json:"idle_ns,omitempty"`
}
