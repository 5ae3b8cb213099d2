package scenarios

import (
	"time"

	"hammerlock/workload"
)

var renewalHangs = Scenario{
	Name:     "renewal-hangs",
	Doc:      "a server stops for longer than a lease, while leases are renewed: holders must be told in time",
	For:      renews,
	Faults:   []string{"pause-primary@1s", "heal@2500ms", "pause-primary@5s", "heal@6500ms"},
	Duration: 10 * time.Second,
	Shape:    func(w *workload.Shape) { w.Workers, w.Keys, w.Hold = 48, 24, 2*Renewed },
}
