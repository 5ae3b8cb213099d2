package scenarios

import (
	"time"

	"hammerlock/history"
	"hammerlock/workload"
)

var processCrash = Scenario{
	Name:      "process-crash",
	Class:     Crashes,
	Doc:       "a process dies with the lock in its hands, and with it all who waited there",
	Processes: 2,
	Insists:   true,
	Faults:    []string{"kill-process@300ms"},
	Shows:     []string{history.Liveness},
	Duration:  2400 * time.Millisecond,
	Shape:     func(w *workload.Shape) { w.Workers = 8 },
}
