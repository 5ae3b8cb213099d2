package scenarios

import (
	"time"

	"hammerlock/workload"
)

// The fault catches a holder at its grant. Holds of different lengths let grants come all the time, so that a cut begins when it is planned:
// if all were alike, all pages would be granted at once, and the next grant would come when the cut is to be healed.
var renewalCut = Scenario{
	Name:      "renewal-cut",
	Doc:       "a process is cut off from the servers for longer than a lease that it renews: its holders must be told in time",
	For:       renews,
	Processes: 2,
	Faults:    []string{"cut-holder@1s", "heal@2600ms", "cut-holder@3200ms", "heal@4800ms"},
	Duration:  7400 * time.Millisecond,
	Shape:     func(w *workload.Shape) { w.Workers, w.Keys, w.Hold, w.Spread = 48, 24, 2*Renewed, 0.5 },
}
