package scenarios

import (
	"time"

	"hammerlock/workload"
)

var slowServer = Scenario{
	Name:     "slow-server",
	Doc:      "a server is slow",
	For:      alone,
	Faults:   []string{"slow-server@300ms"},
	Duration: 3400 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Workers = 8 },
}
