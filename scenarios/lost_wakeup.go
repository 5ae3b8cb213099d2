package scenarios

import (
	"time"

	"hammerlock/history"
	"hammerlock/workload"
)

var lostWakeup = Scenario{
	Name: "lost-wakeup",
	Doc: "all come at once, connections of those who wait for a message are closed while the lock is held, and then no worker comes for " +
		"longer than any lock may be idle, to wake them: none may sleep for longer than a lease",
	Faults:   []string{"cut-subscriptions@2050ms", "cut-subscriptions@2250ms"},
	Shows:    []string{history.Liveness},
	Duration: 3700 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Hold, w.Think, w.Wait = 64, 8, 100*time.Millisecond, 1800*time.Millisecond, 5*time.Second
	},
}
