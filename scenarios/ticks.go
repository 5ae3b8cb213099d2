package scenarios

import (
	"time"

	"hammerlock/faults"
	"hammerlock/workload"
)

// A key lasts for longer than the clocks differ, and no tick comes twice in the run.
var ticks = Scenario{
	Name: "ticks",
	Doc: "machines whose clocks differ want to run a short job once a tick, and some ask at the same moment: exactly " +
		"one of them may run it",
	NotFor:   claim(func(s faults.Scene) bool { return s.Claims.Once }, "a job runs once a tick"),
	Duration: 3400 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Tick, w.Apart = 16, 100, 25*time.Millisecond, 800*time.Millisecond
		w.TTL, w.Hold, w.Wait = 5*time.Second, 2*time.Millisecond, time.Millisecond
	},
}
