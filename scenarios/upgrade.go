package scenarios

import (
	"time"

	"hammerlock/faults"
	"hammerlock/workload"
)

var upgrade = Scenario{
	Name:     "upgrade",
	Doc:      "readers become writers, and store one more than they saw as readers",
	For:      claim(func(s faults.Scene) bool { return s.Claims.Upgrades }, "a reader can become the writer"),
	Duration: 2 * time.Second,
	Shape:    func(w *workload.Shape) { w.Workers, w.Readers, w.Upgrade, w.Think = 6, 0.9, 1, 2*time.Millisecond },
}
