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
	Faults:   []string{"delay:80ms@200ms", "heal@1800ms"},
	Duration: 3100 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Keys, w.TTL, w.Retry, w.Heed = 4, 60*time.Millisecond, 10*time.Millisecond, false
	},
}
