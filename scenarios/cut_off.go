package scenarios

import (
	"time"

	"hammerlock/history"
	"hammerlock/workload"
)

var cutOff = Scenario{
	Name:      "cut-off",
	Doc:       "a process is cut off from the servers with the lock in its hands, for longer than the lease. Its holders heed their deadlines",
	For:       expires,
	Processes: 2,
	Faults:    []string{"cut-holder@300ms", "heal@1100ms"},
	Shows:     []string{history.Liveness},
	Duration:  4000 * time.Millisecond,
	Leases:    1,
	Shape:     func(w *workload.Shape) { w.Workers = 8 },
}
