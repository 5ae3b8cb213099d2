package scenarios

import (
	"time"

	"hammerlock/workload"
)

var lateHolder = Scenario{
	Name:     "late-holder",
	Class:    LateHolders,
	Doc:      "holders are late now and then. They heed their deadline and do not store, but they give the lock back",
	For:      expires,
	Faults:   []string{"stall-worker@granted", "stall-worker@600ms", "stall-worker@1200ms", "stall-worker@1700ms"},
	Duration: 2600 * time.Millisecond,
	Leases:   4,
	Shape:    func(w *workload.Shape) { w.Workers = 8 },
}
