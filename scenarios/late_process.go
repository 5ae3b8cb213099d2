package scenarios

import (
	"time"

	"hammerlock/workload"
)

var lateProcess = Scenario{
	Name:      "late-process",
	Class:     LateHolders,
	Doc:       "a process stops with the lock in its hands, and goes on when its lease is over. Its holders heed their deadlines",
	For:       expires,
	Processes: 2,
	Faults:    []string{"stop-process@300ms", "stop-process@1200ms"},
	Duration:  4200 * time.Millisecond,
	Leases:    2,
	Shape:     func(w *workload.Shape) { w.Workers = 8 },
}
