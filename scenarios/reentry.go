package scenarios

import (
	"time"

	"hammerlock/workload"
)

var reentry = Scenario{
	Name:     "reentry",
	Doc:      "every holder acquires again before it stores, up to three times one after the other",
	For:      reenter,
	Duration: 2 * time.Second,
	Shape:    func(w *workload.Shape) { w.Reenter, w.Inner = 1, 3 },
}
