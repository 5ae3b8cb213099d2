package scenarios

import (
	"time"

	"hammerlock/workload"
)

var sleepers = Scenario{
	Name:     "sleepers",
	Doc:      "long holds and many who wait: each release must reach one of them",
	Duration: 3 * time.Second,
	Shape:    func(w *workload.Shape) { w.Workers, w.Hold = 24, 20*time.Millisecond },
}
