package scenarios

import (
	"time"

	"hammerlock/workload"
)

var readers = Scenario{
	Name:     "readers",
	Doc:      "many readers and some writers: a reader looks when it comes and before it goes, and no writer may write meanwhile",
	For:      reads,
	Duration: 2 * time.Second,
	Shape:    func(w *workload.Shape) { w.Readers, w.Hold, w.Spread = 0.8, 3*time.Millisecond, 0.9 },
}
