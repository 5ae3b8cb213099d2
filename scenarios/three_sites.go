package scenarios

import (
	"time"

	"hammerlock/workload"
)

var threeSites = Scenario{
	Name:     "three-sites",
	Doc:      "three sites in place of five, and one of them does not answer: two are a majority",
	For:      several,
	Sites:    3,
	Faults:   []string{"pause-minority@200ms"},
	Duration: 2500 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Workers = 4 },
}
