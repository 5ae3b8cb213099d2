package scenarios

import (
	"time"

	"hammerlock/workload"
)

var cancelled = Scenario{
	Name:     "cancelled",
	Doc:      "one in eight visits is called off at a random moment, also in the middle of a call",
	For:      expires,
	Duration: 2400 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Keys, w.Cancel = 8, 8 },
}
