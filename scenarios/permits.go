package scenarios

import (
	"time"

	"hammerlock/faults"
	"hammerlock/workload"
)

var permits = Scenario{
	Name:     "permits",
	Doc:      "visits ask for one permit of a semaphore, or two, which not all can have",
	For:      claim(func(s faults.Scene) bool { return s.Claims.Permits > 0 }, "it is a semaphore"),
	Duration: 2 * time.Second,
	Shape:    func(w *workload.Shape) { w.Permits, w.Hold, w.Spread = 2, 2*time.Millisecond, 0.9 },
}
