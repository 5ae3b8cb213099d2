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
	Faults:    []string{"cut-holder@300ms", "heal@1600ms", "cut-holder@2600ms", "heal@3900ms"},
	Duration:  6800 * time.Millisecond,
	Shape:     func(w *workload.Shape) { w.Workers, w.Keys, w.Hold = 48, 24, 2*Renewed },
}
