package scenarios

import (
	"time"

	"hammerlock/workload"
)

var cost = Scenario{
	Name:      "cost",
	Doc:       "some wait, in two processes, while another one holds the lock: they must not storm the servers",
	For:       own,
	Frugal:    true,
	Alone:     true,
	Processes: 2,
	Duration:  1800 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Hold, w.Think, w.Retry = 4, 60*time.Millisecond, 40*time.Millisecond, 20*time.Millisecond
	},
}
