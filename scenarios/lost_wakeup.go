package scenarios

import (
	"time"

	"hammerlock/history"
	"hammerlock/workload"
)

var lostWakeup = Scenario{
	Name: "lost-wakeup",
	Doc: "connections of those who wait for a message are closed while the lock is held, and then nobody comes for a while who " +
		"could wake them: nobody may sleep for longer than a lease",
	Faults:   []string{"cut-subscriptions@450ms", "cut-subscriptions@600ms"},
	Shows:    []string{history.Liveness},
	Duration: 2800 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Hold, w.Think, w.Wait = 24, 8, 150*time.Millisecond, 350*time.Millisecond, 5*time.Second
	},
}
