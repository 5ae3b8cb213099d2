package scenarios

import (
	"time"

	"hammerlock/workload"
)

var manyKeys = Scenario{
	Name:     "many-keys",
	Class:    Contention,
	Alone:    true,
	Doc:      "2000 locks, few of them popular, most taken now and then, with names of which some begin with others: what is left behind adds up",
	Duration: 1500 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Bare, w.Hold, w.Popularity = 32, 2000, true, 0, workload.Zipf
	},
}
