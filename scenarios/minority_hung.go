package scenarios

import (
	"time"

	"hammerlock/history"
	"hammerlock/workload"
)

var minorityHung = Scenario{
	Name:     "minority-hung",
	Doc:      "a minority of the sites does not answer, from the start to the end, and leases are shorter than the patience of many a client",
	Faults:   []string{"pause-minority@200ms"},
	Shows:    []string{history.Liveness},
	Duration: 3 * time.Second,
	Shape:    func(w *workload.Shape) { w.Workers, w.TTL = 8, w.TTL*5/8 },
}
