package scenarios

import (
	"time"

	"hammerlock/workload"
)

var renewal = Scenario{
	Name:     "renewal",
	Doc:      "holds of two leases, which the lock has to renew. Answers take a while now and then: the next holder comes before the last one has heard that it is over",
	For:      renews,
	Faults:   []string{"delay:15ms@700ms", "heal@2600ms"},
	Duration: 4200 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Workers, w.Keys, w.Hold = 40, 20, 2*Renewed },
}
