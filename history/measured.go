package history

import "time"

// Measured is what a run knows at its end besides its operations, and is judged by too.
type Measured struct {
	Driver *Driver `json:"driver,omitempty"` // nil = the lock is in no program of its own
	Cost   *Cost   `json:"cost,omitempty"`   // nil = the run is not about that
	// Ended are programs of a service that ended by themselves, in words.
	Ended []string `json:"ended,omitempty"`
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
