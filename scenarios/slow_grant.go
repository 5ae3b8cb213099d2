package scenarios

import (
	"time"

	"hammerlock/workload"
)

var slowGrant = Scenario{
	Name:     "slow-grant",
	Doc:      "answers take about as long as the lease: many a grant is over when it is heard of",
	For:      plain,
	Faults:   []string{"delay:80ms@200ms", "heal@1800ms"},
	Duration: 3100 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Keys, w.TTL, w.Retry = 4, 60*time.Millisecond, 10*time.Millisecond },
}
