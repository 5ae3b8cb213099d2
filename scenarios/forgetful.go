package scenarios

import (
	"time"

	"hammerlock/history"
	"hammerlock/workload"
)

var forgetful = Scenario{
	Name:     "forgetful",
	Doc:      "a server dies, and comes back without its keys when every lease is over",
	For:      expires,
	Faults:   []string{"restart-late@300ms"},
	Shows:    []string{history.Liveness},
	Duration: 3600 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Workers = 8 },
}
