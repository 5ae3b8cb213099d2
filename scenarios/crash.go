package scenarios

import (
	"time"

	"hammerlock/history"
	"hammerlock/workload"
)

var crash = Scenario{
	Name:     "crash",
	Class:    Crashes,
	Doc:      "a holder dies, and nothing else happens: another worker must be granted the lock when its lease is over",
	Insists:  true,
	Faults:   []string{"crash-worker@300ms"},
	Shows:    []string{history.Liveness},
	Duration: 2400 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Workers = 8 },
}
