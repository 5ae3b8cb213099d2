package scenarios

import (
	"time"

	"hammerlock/workload"
)

var lateRelease = Scenario{
	Name:  "late-release",
	Class: LateHolders,
	Doc: "holds of about a lease, while messages take their time: leases end on the way of a release, and between its commands. " +
		"Some of the locks' names begin with others",
	For:      plain,
	Faults:   []string{"delay@100ms", "heal@2300ms"},
	Duration: 3400 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Bare, w.Hold, w.Spread, w.Retry = 32, 12, true, TTL*9/10, 0.2, 10*time.Millisecond
	},
}
