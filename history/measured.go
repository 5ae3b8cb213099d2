package history

import "time"

// Measured is what a run knows at its end besides its operations, and is judged by too.
type Measured struct {
	Driver *Driver `json:"driver,omitempty"` // nil = the lock is in no program of its own
	Cost   *Cost   `json:"cost,omitempty"`   // nil = the run is not about that
	// Programs is how many programs of a service the suite started, Ended which of them ended by themselves, in words.
	Programs int      `json:"programs,omitempty"`
	Ended    []string `json:"ended,omitempty"`
	// Hung are the calls of the lock that had to be called off after the run's end, Crashes what ended of the lock's
	// own doing.
	Hung    []Hung      `json:"hung,omitempty"`
	Crashes []Breakdown `json:"crashes,omitempty"`
	Stream  *Stream     `json:"stream,omitempty"` // nil = none was read
	// Said is what the first error of each kind said, by kind, outcome and reason, as in "release unknown other".
	Said map[string]string `json:"said,omitempty"`
	// Unseen is how many looks into the servers found no key of the lock during the run; 0 if a look found one.
	Unseen int64 `json:"unseen,omitempty"`
	// Elsewhere says which server had keys in another database than the one that clients are sent to; empty = none.
	Elsewhere string `json:"elsewhere,omitempty"`
	Wear      []Wear `json:"wear,omitempty"` // nil = the run is not about that
}

// EndedInErrors are, among the misses of the check calls, those that ended in an error while nothing was or had been
// broken.
const EndedInErrors = "ended in errors while nothing was broken"

// Stream is what the servers' replication streams told of a run's locks: a server streams each command that it has
// executed.
type Stream struct {
	Effects  int64   `json:"effects"`  // commands on keys of locks
	Compared int64   `json:"compared"` // granted acquires and answered releases that were looked for
	Grants   Settled `json:"grants"`   // acquires whose outcome is unknown
	Releases Settled `json:"releases"` // releases whose outcome is unknown
	// where the streams say otherwise than the operations: the first ones
	Against []string   `json:"against,omitempty"`
	Forgot  []Takeover `json:"forgot,omitempty"` // what replicas did not know when they were promoted
	Breaks  []string   `json:"breaks,omitempty"` // where a stream broke off or could not be read
	// more locks were granted than are kept: later ones were not looked for
	Overflow bool `json:"overflow,omitempty"`
}

// Settled counts operations whose outcome the client does not know, by what the streams say of it.
type Settled struct {
	Unknown  int64 `json:"unknown"`  // all of them
	Executed int64 `json:"executed"` // those that had their effect
	// those that had no effect: all streams were read to the end, and have nothing of it
	Without int64 `json:"without"`
}

// Takeover is the promotion of a replica that had not heard of all that the primary before it did.
type Takeover struct {
	Node     string        `json:"node"`
	Before   string        `json:"before"`   // the primary whose place it took
	At       time.Duration `json:"at_ns"`    // when its stream told of it
	Upto     int64         `json:"upto"`     // it had the commands of the one before up to this offset
	Last     int64         `json:"last"`     // the offset of the last command on a lock that it had not
	Grants   int           `json:"grants"`   // locks that were held then, of which it did not know
	Released int           `json:"released"` // locks that had been released, which it still had
}

// Wear is what a process that has the lock has at the end of a rest, in which its workers call nothing: a worker
// process, or the program of the lock. 0 means unknown.
type Wear struct {
	Process    int16         `json:"process,omitempty"`
	Workers    int           `json:"workers"`
	At         time.Duration `json:"at_ns"`
	Goroutines int64         `json:"goroutines"` // of a program: threads
	Files      int64         `json:"files"`      // open ones, and connections
	Memory     int64         `json:"memory"`     // bytes: of the heap after a collection, of a program: resident
	CPU        float64       `json:"cpu"`        // how much of one it takes in the rest
	// where the goroutines are that have become more since the rest before
	Most []string `json:"most,omitempty"`
}

// Hung is a worker whose call of the lock was open for so long after the run's end that its context was ended.
type Hung struct {
	Worker    int32         `json:"worker"`
	CalledOff time.Duration `json:"called_off_ns"`
	GivenUp   time.Duration `json:"given_up_ns,omitempty"` // the call had not returned by then; 0 = it has returned
	// where it waits: a stack, or the last words of the lock's program
	Text string `json:"text,omitempty"`
}

// Breakdown is the end of a program that has the lock, of a worker process, or of a worker whose lock panicked.
type Breakdown struct {
	Process int16         `json:"process,omitempty"`
	Workers []int32       `json:"workers,omitempty"` // that ended with it
	At      time.Duration `json:"at_ns"`
	Lives   bool          `json:"lives,omitempty"` // it only said that a part of it panicked
	Text    string        `json:"text"`            // how it ended
	Said    []string      `json:"said,omitempty"`  // the last lines of its standard error
}

// Driver is how the program behaved that has the lock.
type Driver struct {
	Pings  int64         `json:"pings"`            // answered while it was measured
	Median time.Duration `json:"median_ns"`        // how long they took
	Silent int64         `json:"silent,omitempty"` // calls that had no answer in time
	Text   string        `json:"text"`             // all of it in words
	// it did not read the wall clock that was set for it
	ClockUnread bool `json:"clock_unread,omitempty"`
}

// Cost is what the load made the servers do.
type Cost struct {
	Visits     int64         `json:"visits"`
	Commands   *float64      `json:"commands,omitempty"`    // a visit; nil = servers do not tell
	RoundTrips *float64      `json:"round_trips,omitempty"` // a visit; nil = not counted
	Duration   time.Duration `json:"duration_ns"`           // in which these visits were made
	// of one, for each worker, in the processes that have the lock; nil = not known
	CPU *float64 `json:"cpu,omitempty"`
}
