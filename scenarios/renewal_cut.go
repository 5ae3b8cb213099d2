package scenarios

import (
	"time"

	"hammerlock/workload"
)

var renewalCut = Scenario{
	Name:      "renewal-cut",
	Doc:       "a process is cut off from the servers for longer than a lease that it renews: its holders must be told in time",
	For:       renews,
	Processes: 2,
	Faults:    []string{"cut-holder@500ms", "heal@2s", "cut-holder@4s", "heal@5500ms"},
	Duration:  9 * time.Second,
	Shape:     func(w *workload.Shape) { w.Workers, w.Keys, w.Hold = 48, 24, 2*Renewed },
}
