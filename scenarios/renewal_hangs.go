package scenarios

import (
	"time"

	"hammerlock/workload"
)

var renewalHangs = Scenario{
	Name:     "renewal-hangs",
	Doc:      "a server stops for longer than a lease, while leases are renewed: holders must be told in time",
	For:      both(alone, renews),
	Faults:   []string{"pause-primary@300ms", "heal@1600ms", "pause-primary@2600ms", "heal@3900ms"},
	Duration: 6500 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Workers, w.Keys, w.Hold = 48, 24, 2*Renewed },
}
