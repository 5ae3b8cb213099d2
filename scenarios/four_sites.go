package scenarios

import (
	"time"

	"hammerlock/workload"
)

var fourSites = Scenario{
	Name:     "four-sites",
	Doc:      "four sites in place of five, which can be divided into two pairs: neither is a majority",
	For:      several,
	Sites:    4,
	Duration: 2 * time.Second,
	Shape:    func(w *workload.Shape) { w.Workers, w.Hold = 8, 5*time.Millisecond },
}
