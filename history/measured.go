package history

import "time"

// Measured is what the run measured besides its operations. Checkers use it too.
type Measured struct {
	Driver *Driver `json:"driver,omitempty"` // nil = the lock runs in no program of its own
	Cost   *Cost   `json:"cost,omitempty"`   // nil = not measured
	// Programs counts the programs of a service that the suite started. Ended describes those that ended without a
	// planned fault.
	Programs int      `json:"programs,omitempty"`
	Ended    []string `json:"ended,omitempty"`
	// Hung lists the lock calls that had to be cancelled after the end of the run. Crashes lists programs that the
	// lock itself ended.
	Hung    []Hung      `json:"hung,omitempty"`
	Crashes []Breakdown `json:"crashes,omitempty"`
	Stream  *Stream     `json:"stream,omitempty"` // nil = no stream was read
	// Said maps a class of errors, such as "release unknown other" (kind, outcome, reason), to the first error text
	// of that class.
	Said map[string]string `json:"said,omitempty"`
	// Unseen counts the searches for keys of the lock on the servers during the run, if none of them found a key.
	// It is 0 if one of them found a key.
	Unseen int64 `json:"unseen,omitempty"`
	// Elsewhere names a server with keys in another database than the one that clients use; empty = no such server.
	Elsewhere string `json:"elsewhere,omitempty"`
	Wear      []Wear `json:"wear,omitempty"` // nil = not measured
}

// EndedInErrors is a kind of miss that the checker Calls counts: visits that ended in an error although nothing was
// broken, then or earlier.
const EndedInErrors = "ended in errors while nothing was broken"

// Stream summarizes the servers' replication streams, in which a server sends each command that it has executed.
type Stream struct {
	Effects  int64   `json:"effects"`  // commands on lock keys
	Compared int64   `json:"compared"` // granted acquires and answered releases that were looked up
	Grants   Settled `json:"grants"`   // acquires with unknown outcome
	Releases Settled `json:"releases"` // releases with unknown outcome
	// the first contradictions between streams and operations
	Against []string   `json:"against,omitempty"`
	Forgot  []Takeover `json:"forgot,omitempty"` // what replicas lacked at their promotion
	Breaks  []string   `json:"breaks,omitempty"` // where a stream broke off or was unreadable
	// Early lists the first holds that a server ended too early: before their lease was over and before their
	// release was called.
	Early []EarlyEnd `json:"early,omitempty"`
	// Minority lists the first grants that were on some independent sites, but not on a majority of them.
	Minority []Minority `json:"minority,omitempty"`
	// there were more grants than the suite keeps, so later ones were not looked up
	Overflow bool `json:"overflow,omitempty"`
}

// Minority is a grant on too few of several independent sites.
type Minority struct {
	Token uint64 `json:"token"`
	Sites int    `json:"sites"` // number of sites that had the grant at some time
}

// EarlyEnd is the end of a hold on a server at a time when its holder was sure to have the lock.
type EarlyEnd struct {
	Node  string        `json:"node"`
	Token uint64        `json:"token"`
	At    time.Duration `json:"at_ns"`          // when the server's stream reported the end
	By    string        `json:"by"`             // the command; Expiry if the server's own lease was over
	Next  uint64        `json:"next,omitempty"` // the token that was written to the key next; 0 = none
	// Extended says that an extension had promised a later end, and was answered before the hold ended.
	Extended bool `json:"extended,omitempty"`
}

// Expiry stands in the field By if no command ended the hold, but its lease in the server was over.
const Expiry = "expiry"

// Settled counts the operations whose outcome the client does not know. The streams show which of them had an effect.
type Settled struct {
	Unknown  int64 `json:"unknown"`  // total
	Executed int64 `json:"executed"` // had an effect
	// had no effect: all streams were read to the end and do not contain it
	Without int64 `json:"without"`
}

// Takeover is the promotion of a replica that lacked commands of the primary before it.
type Takeover struct {
	Node     string        `json:"node"`
	Before   string        `json:"before"`   // the primary before it
	At       time.Duration `json:"at_ns"`    // when its stream reported the promotion
	Upto     int64         `json:"upto"`     // offset up to which it had the commands of the primary before it
	Last     int64         `json:"last"`     // offset of the last command on a lock that it lacked
	Grants   int           `json:"grants"`   // locks that were held then but unknown to it
	Released int           `json:"released"` // locks that had been released but that it still had
}

// Wear is the resource use of a process at the end of a rest, during which its workers call nothing. The process is a
// worker process or the lock's program. 0 = unknown.
type Wear struct {
	Process    int16         `json:"process,omitempty"`
	Workers    int           `json:"workers"`
	At         time.Duration `json:"at_ns"`
	Goroutines int64         `json:"goroutines"` // threads, for a program
	Files      int64         `json:"files"`      // open files and connections
	Memory     int64         `json:"memory"`     // in bytes: the heap after a collection; for a program resident memory
	CPU        float64       `json:"cpu"`        // share of one CPU during the rest
	// places where goroutines wait, if the number of goroutines there has grown since the previous rest
	Most []string `json:"most,omitempty"`
}

// Hung is a worker whose lock call was still open long after the end of the run, so that its context was cancelled.
type Hung struct {
	Worker    int32         `json:"worker"`
	CalledOff time.Duration `json:"called_off_ns"`
	GivenUp   time.Duration `json:"given_up_ns,omitempty"` // when the worker was abandoned; 0 = its call returned
	// place where the call waits: a stack, or the last output of the lock's program
	Text string `json:"text,omitempty"`
}

// Breakdown is the end of a lock's program, of a worker process, or of a worker whose lock panicked.
type Breakdown struct {
	Process int16         `json:"process,omitempty"`
	Workers []int32       `json:"workers,omitempty"` // the workers that ended with it
	At      time.Duration `json:"at_ns"`
	Lives   bool          `json:"lives,omitempty"` // it reported a panic in a part of it and went on
	Text    string        `json:"text"`            // how it ended
	Said    []string      `json:"said,omitempty"`  // last lines of standard error
}

// Driver says how responsive the lock's program was.
type Driver struct {
	Pings  int64         `json:"pings"`            // answered during the measurement
	Median time.Duration `json:"median_ns"`        // median response time of the pings
	Silent int64         `json:"silent,omitempty"` // calls without an answer in time
	Text   string        `json:"text"`             // the whole report
	// the program did not read the wall clock that the suite had set for it
	ClockUnread bool `json:"clock_unread,omitempty"`
}

// Cost is the load on the servers.
type Cost struct {
	Visits     int64         `json:"visits"`
	Commands   *float64      `json:"commands,omitempty"`    // per visit; nil = servers do not report them
	RoundTrips *float64      `json:"round_trips,omitempty"` // per visit; nil = not counted
	Duration   time.Duration `json:"duration_ns"`           // time in which these visits were made
	// CPUs per worker in the lock's processes; nil = unknown
	CPU *float64 `json:"cpu,omitempty"`
}
