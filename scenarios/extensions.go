package scenarios

import (
	"time"

	"hammerlock/workload"
)

var extensions = Scenario{
	Name:     "extensions",
	Doc:      "holds of several leases, each lengthened before it ends",
	For:      plain,
	Duration: 2500 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Workers, w.Keys, w.Hold, w.Extend, w.Stays = 24, 12, TTL/2, TTL, 4 },
}
