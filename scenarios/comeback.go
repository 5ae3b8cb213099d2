package scenarios

import (
	"time"

	"hammerlock/workload"
)

var comeback = Scenario{
	Name:      "comeback",
	Class:     LateHolders,
	Doc:       "holders come back when their lease is over, most to locks that no other worker has taken meanwhile, and extend it",
	For:       expires,
	Processes: 2,
	Faults:    []string{"stall-worker@200ms", "stop-process@800ms", "stop-process@1700ms"},
	Duration:  4700 * time.Millisecond,
	Leases:    3,
	Shape:     func(w *workload.Shape) { w.Workers, w.Keys, w.Hold, w.Extend = 4, 40, 10*time.Millisecond, w.TTL },
}
