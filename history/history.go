package history

import "time"

// History is the record of a run.
type History struct {
	Header
	// Ops are in the order of their returns; calls without a return come last. If they were read from a file, their
	// memory belongs to Space.
	Ops   []Op
	Space Space
	// Notes maps the ID of a Fault or Heal to a description of its effect.
	Notes map[ID]string
	// Partial says why the end is missing; empty = the history is whole.
	Partial string
	// Allowed says that the user allowed the end to be missing. Such a history is judged as if it were whole.
	Allowed bool
}

// Header is the information about a run that checkers need besides the operations.
type Header struct {
	Name     string    `json:"name"`
	Started  time.Time `json:"started"`
	Command  string    `json:"command"` // to repeat the run
	Topology string    `json:"topology"`
	Lock     string    `json:"lock"`

	Workers   int           `json:"workers"`
	Callers   int           `json:"callers,omitempty"` // see Caller; 0 = each worker is one
	Processes int           `json:"processes"`
	Keys      int           `json:"keys"`
	Names     []string      `json:"names,omitempty"` // names of the first pages, for stories; nil = unknown
	Retry     time.Duration `json:"retry_ns"`        // mean backoff between two attempts
	Wait      time.Duration `json:"wait_ns"`         // longest wait of a visit for the lock

	Sites int `json:"sites,omitempty"` // independent sites of the lock; 0 = one
	// number of servers in the topology; 0 = unknown. Servers with this number or a higher one belong to the counter.
	Nodes   int    `json:"nodes,omitempty"`
	Counter string `json:"counter,omitempty"` // where page views are stored; CounterOnTopology = on the lock's servers
	Fenced  bool   `json:"fenced,omitempty"`  // the counter refuses a fencing token smaller than an earlier one

	// Service says that the visits went to a service that does its own locking. Each Store is then one request
	// without a hold. Its Value is the count in the answer since the run began; 0 = the answer had none.
	Service bool `json:"service,omitempty"`

	// Wire is empty if workers recorded the history. If the history was read from network traffic, Wire says what
	// could not be seen there.
	Wire string `json:"wire,omitempty"`

	// ServerErrors says that server errors do not count against the lock. Other people run the servers and may have
	// filled their memory, or the servers stand in for Redis and lack commands.
	ServerErrors bool `json:"server_errors,omitempty"`

	// Session says that a hold ends with the connection on which it was granted. So it also ends when its holder dies.
	Session bool `json:"session,omitempty"`

	// Heeds says that a holder does not store after its deadline.
	Heeds bool `json:"heeds,omitempty"`

	// NotAbout lists checkers outside the subject of the run. If such a checker finds too little to judge, its verdict
	// is "not judged" instead of "inconclusive".
	NotAbout []string `json:"aside,omitempty"`

	// Unseen maps each checker whose subject could not be observed at all to the reason. These checkers do not
	// judge the run.
	Unseen map[string]string `json:"unseen,omitempty"`

	// Measured is known at the end of the run only; nil = nothing was measured.
	Measured *Measured `json:"measured,omitempty"`

	Claims Claims `json:"claims"`
	Bounds Bounds `json:"bounds"`
	// Faults lists the planned faults, then those injected by hand. Op.Value of a Fault or Heal is an index
	// into this list.
	Faults []Injection `json:"faults"`
}

// Caller returns the worker that made the calls with this worker number. A visit that takes several pages at once
// has a worker number for each page. Numbers that differ by a multiple of Callers belong to one caller.
func (h *Header) Caller(worker int32) int32 {
	if h.Callers == 0 || worker < 0 {
		return worker
	}
	return worker % int32(h.Callers)
}

// CounterOnTopology is the Counter that shares the lock's servers and their faults.
const CounterOnTopology = "topology"

// The checkers that NotAbout can name.
const (
	Calls    = "calls"
	Client   = "client"
	Liveness = "liveness"
	Fairness = "fairness"
	Updates  = "lost-updates"
)

// Bounds are the largest errors of clocks and delays that checkers allow for.
type Bounds struct {
	Agreement
	Rate  float64       `json:"rate"`     // fraction by which servers' clocks may run faster or slower
	Round time.Duration `json:"round_ns"` // largest rounding or freeze of a server's clock
	// Recovery is the longest time for which clients get no service after the servers have become healthy or have
	// failed over; 0 = unknown.
	Recovery time.Duration `json:"recovery_ns,omitempty"`
	// Gap is the shortest pause of a process that is recorded as a Gap; 0 = pauses are not recorded.
	Gap time.Duration `json:"gap_ns,omitempty"`
	// Linger is how much longer than requested a lease may last, for example because it is rounded up to seconds or
	// ends with a session. Holders may rely on the deadline in the answer.
	Linger time.Duration `json:"linger_ns,omitempty"`
	// Idle is the longest time for which a lock may be idle although nothing in the run explains it, because the
	// machine is slow; 0 = one second.
	Idle time.Duration `json:"idle_ns,omitempty"`
}
