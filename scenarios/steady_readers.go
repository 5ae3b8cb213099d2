package scenarios

import (
	"time"

	"hammerlock/workload"
)

var steadyReaders = Scenario{
	Name:     "steady-readers",
	Doc:      "readers come and go, and one is always there; now and then a writer comes",
	For:      reads,
	Duration: 4 * time.Second,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Readers, w.Hold, w.Spread, w.Wait = 32, 0.99, 60*time.Millisecond, 0.9, 6*time.Second
	},
}
