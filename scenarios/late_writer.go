package scenarios

import (
	"time"

	"hammerlock/workload"
)

var lateWriter = Scenario{
	Name:     "late-writer",
	Class:    LateHolders,
	Doc:      "holders are late now and then, and store all the same: the counter must refuse it by their fencing tokens",
	For:      fences,
	Insists:  true,
	Counter:  workload.RedisFenced,
	Faults:   []string{"stall-worker@300ms", "stall-worker@1200ms", "stall-worker@2100ms"},
	Duration: 4 * time.Second,
	Shape:    func(w *workload.Shape) { w.Workers, w.Heed = 8, false },
}
