package history

import "time"

// Measured is what a run knows at its end besides its operations, and is judged by too.
type Measured struct {
	Driver *Driver `json:"driver,omitempty"` // nil = the lock is in no program of its own
	Cost   *Cost   `json:"cost,omitempty"`   // nil = the run is not about that
	// Ended are programs of a service that ended by themselves, in words.
	Ended []string `json:"ended,omitempty"`
	// Hung are the calls of the lock that had to be called off after the run's end, Crashes what ended of the lock's own doing.
	Hung    []Hung      `json:"hung,omitempty"`
	Crashes []Breakdown `json:"crashes,omitempty"`
}

// Hung is a worker whose call of the lock was open for so long after the run's end that its context was ended.
type Hung struct {
	Worker    int32         `json:"worker"`
	CalledOff time.Duration `json:"called_off_ns"`
	GivenUp   time.Duration `json:"given_up_ns,omitempty"` // the call had not returned by then; 0 = it has returned
	Text      string        `json:"text,omitempty"`        // where it waits: a stack, or the last words of the lock's program
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
}

// Cost is what the load made the servers do.
type Cost struct {
	Visits     int64         `json:"visits"`
	Commands   *float64      `json:"commands,omitempty"`    // a visit; nil = servers do not tell
	RoundTrips *float64      `json:"round_trips,omitempty"` // a visit; nil = not counted
	Duration   time.Duration `json:"duration_ns"`           // in which these visits were made
}
