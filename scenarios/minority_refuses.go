package scenarios

import (
	"time"

	"hammerlock/workload"
)

var minorityRefuses = Scenario{
	Name:     "minority-refuses",
	Doc:      "a minority of the sites answers every command that needs memory with an error, from the start to the end",
	Faults:   []string{"refuse-writes@200ms"},
	Duration: 2500 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Workers = 8 },
}
