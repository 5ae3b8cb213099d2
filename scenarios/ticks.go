package scenarios

import (
	"time"

	"hammerlock/faults"
	"hammerlock/workload"
)

// The clocks differ by most of a lease. If a lock's key expires before its lease, it is gone when the worker with
// the latest clock asks, and the job runs twice. After the end of the lease, a second grant is allowed: it happens
// on a slow machine.
var ticks = Scenario{
	Name: "ticks",
	Doc: "machines whose clocks differ by most of a lease want to run a short job once a tick, and some ask at the " +
		"same moment: exactly one of them may run it",
	NotFor:   claim(func(s faults.Scene) bool { return s.Claims.Once }, "a job runs once a tick"),
	Duration: 3400 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Tick, w.Apart = 16, 100, 25*time.Millisecond, 900*time.Millisecond
		w.TTL, w.Hold, w.Wait = time.Second, 2*time.Millisecond, time.Millisecond
	},
}
