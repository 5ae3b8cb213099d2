package scenarios

import (
	"time"

	"hammerlock/workload"
)

// The sites that had granted a lock are not those that can lengthen it: one minority is silent while it is granted, and
// another, with a gap that is shorter than a hold, while it is lengthened.
var failingSites = Scenario{
	Name:     "failing-sites",
	Doc:      "leases are lengthened while one minority of the sites after another does not answer: a majority that has granted it must lengthen it",
	For:      both(several, plain),
	Faults:   []string{"pause-minority@200ms", "heal@800ms", "pause-minority@1100ms", "heal@1700ms"},
	Duration: 3200 * time.Millisecond,
	Leases:   1,
	Shape:    func(w *workload.Shape) { w.Workers, w.Keys, w.Hold, w.Extend, w.Stays = 24, 12, TTL/4, TTL, 12 },
}
