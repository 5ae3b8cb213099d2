package scenarios

import (
	"time"

	"hammerlock/workload"
)

var slowServer = Scenario{
	Name:     "slow-server",
	Doc:      "a server is slow",
	Faults:   []string{"slow-server@500ms"},
	Duration: 6 * time.Second,
	Shape:    func(w *workload.Shape) { w.Workers = 8 },
}
