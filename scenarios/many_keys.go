package scenarios

import (
	"time"

	"hammerlock/workload"
)

var manyKeys = Scenario{
	Name:     "many-keys",
	Doc:      "2000 locks, few of them popular, most taken now and then: what is left behind adds up",
	Duration: 1500 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Workers, w.Keys, w.Hold, w.Popularity = 32, 2000, 0, workload.Zipf },
}
