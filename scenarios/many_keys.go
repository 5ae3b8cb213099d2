package scenarios

import (
	"time"

	"hammerlock/workload"
)

var manyKeys = Scenario{
	Name:     "many-keys",
	Doc:      "2000 locks, each of them taken now and then: what is left behind adds up",
	Duration: 2 * time.Second,
	Shape:    func(w *workload.Shape) { w.Workers, w.Keys, w.Hold = 32, 2000, 0 },
}
