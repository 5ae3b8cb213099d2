package scenarios

import (
	"time"

	"hammerlock/workload"
)

var twoLeases = Scenario{
	Name:      "two-leases",
	Doc:       "every second worker asks for leases twice as long, as in two services that are configured differently: a lease is its holder's",
	For:       plain,
	Processes: 2,
	Duration:  2200 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Hold, w.Spread, w.Uneven = 18, 6, TTL*3/4, 0.8, true
	},
}
