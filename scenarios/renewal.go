package scenarios

import (
	"time"

	"hammerlock/workload"
)

var renewal = Scenario{
	Name:     "renewal",
	Doc:      "holds of two leases: the lock has to renew them",
	For:      renews,
	Duration: 6 * time.Second,
	Shape:    func(w *workload.Shape) { w.Workers, w.Keys, w.TTL, w.Hold = 40, 20, Renewed, 2*Renewed },
}
