package scenarios

import (
	"time"

	"hammerlock/history"
	"hammerlock/workload"
)

var failedRelease = Scenario{
	Name:  "failed-release",
	Class: LostAnswers,
	Doc: "connections break, also under holders who give the lock back: what they could not give back ends with its lease, " +
		"and is renewed no more",
	For:      expires,
	Faults:   []string{"reset@200ms", "reset@300ms"},
	Shows:    []string{history.Liveness},
	Duration: 3300 * time.Millisecond,
	Leases:   1,
	Shape:    func(w *workload.Shape) { w.Keys, w.Hold = 8, 5*time.Millisecond },
}
