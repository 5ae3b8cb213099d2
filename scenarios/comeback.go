package scenarios

import (
	"time"

	"hammerlock/workload"
)

var comeback = Scenario{
	Name:      "comeback",
	Doc:       "holders come back when their lease is over, most to locks that nobody has taken meanwhile, and extend it",
	For:       expires,
	Processes: 2,
	Faults:    []string{"stall-worker@300ms", "stall-worker@1100ms", "stop-process@2s", "stop-process@3s"},
	Duration:  5 * time.Second,
	Shape:     func(w *workload.Shape) { w.Keys, w.Hold, w.Extend = 200, 20*time.Millisecond, TTL },
}
