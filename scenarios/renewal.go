package scenarios

import (
	"time"

	"hammerlock/workload"
)

var renewal = Scenario{
	Name:     "renewal",
	Doc:      "holds of two leases: the lock has to renew them",
	For:      renews,
	Duration: 4200 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Workers, w.Keys, w.Hold = 40, 20, 2*Renewed },
}
