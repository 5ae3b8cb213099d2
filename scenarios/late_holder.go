package scenarios

import (
	"time"

	"hammerlock/workload"
)

var lateHolder = Scenario{
	Name:     "late-holder",
	Doc:      "holders are late now and then. They heed their deadline and do not store, but they give the lock back",
	For:      expires,
	Faults:   []string{"stall-worker@granted", "stall-worker@700ms", "stall-worker@1300ms", "stall-worker@1900ms", "stall-worker@2500ms"},
	Duration: 4 * time.Second,
	Shape:    func(w *workload.Shape) { w.Workers = 8 },
}
