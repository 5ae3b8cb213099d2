package scenarios

import (
	"time"

	"hammerlock/history"
	"hammerlock/workload"
)

var waiterCrash = Scenario{
	Name:     "waiter-crash",
	Class:    Crashes,
	Doc:      "workers die that wait for the lock, also at the head of a queue: no other worker may wait for them",
	For:      refused,
	Insists:  true,
	Faults:   []string{"crash-worker@refused", "crash-worker@refused", "crash-worker@refused"},
	Shows:    []string{history.Liveness},
	Duration: 2400 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Workers, w.Hold = 16, 10*time.Millisecond },
}
