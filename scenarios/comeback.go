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
	Faults:    []string{"stall-worker@300ms", "stop-process@1s", "stop-process@1800ms", "stop-process@2600ms", "stall-worker@3400ms"},
	Duration:  5 * time.Second,
	Shape:     func(w *workload.Shape) { w.Workers, w.Keys, w.Hold, w.Extend = 4, 40, 10*time.Millisecond, TTL },
}
