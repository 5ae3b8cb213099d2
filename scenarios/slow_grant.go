package scenarios

import (
	"time"

	"hammerlock/workload"
)

var slowGrant = Scenario{
	Name:     "slow-grant",
	Doc:      "answers are late, by up to an eighth of the lease",
	For:      expires,
	Faults:   []string{"delay@200ms", "heal@3s"},
	Duration: 6 * time.Second,
	Shape:    func(w *workload.Shape) { w.Workers, w.Keys, w.Retry = 8, 4, 10*time.Millisecond },
}
