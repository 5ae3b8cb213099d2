package scenarios

import "time"

var twoProcesses = Scenario{
	Name:      "two-processes",
	Class:     Contention,
	Doc:       "the workers live in two processes, which share nothing",
	Processes: 2,
	Duration:  1500 * time.Millisecond,
}
