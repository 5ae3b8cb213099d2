package scenarios

import (
	"time"

	"hammerlock/workload"
)

var slowFence = Scenario{
	Name: "slow-fence",
	Doc: "answers take about as long as the lease, and holders store all the same: the fencing token must be of the same moment as the " +
		"grant, however late either is heard of",
	For:      fences,
	Insists:  true,
	Counter:  workload.RedisFenced,
	Faults:   []string{"delay:120ms@200ms", "heal@2400ms"},
	Duration: 3700 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.TTL, w.Retry, w.Heed = 64, 8, 30*time.Millisecond, 10*time.Millisecond, false
	},
}
