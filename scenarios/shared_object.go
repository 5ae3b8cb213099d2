package scenarios

import (
	"time"

	"hammerlock/workload"
)

var sharedObject = Scenario{
	Name:     "shared-object",
	Doc:      "all workers of a process use one object of the lock, on several pages. Some are late, heed their deadline and give the lock back",
	For:      shared,
	Faults:   []string{"stall-worker@400ms", "stall-worker@1100ms"},
	Duration: 2 * time.Second,
	Shape:    func(w *workload.Shape) { w.Workers, w.Keys, w.Hold, w.Shared = 12, 4, 5*time.Millisecond, true },
}
