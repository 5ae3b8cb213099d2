package scenarios

import (
	"time"

	"hammerlock/faults"
	"hammerlock/workload"
)

var clocks = Scenario{
	Name: "clocks",
	Doc: "the clocks of two clients differ by some leases, and that of one steps: nothing but the servers' clock may decide who holds " +
		"the lock (programs whose language asks the C library for the time)",
	For: faults.When(func(s faults.Scene) bool { return !s.Clocked || s.Foreign },
		"there is no clock to set: the lock is in no program of its own, beside servers of the suite's, or there is no C compiler"),
	Processes: 2,
	Duration:  2200 * time.Millisecond,
	Shape:     func(w *workload.Shape) { w.Workers, w.Keys, w.Hold, w.Skew = 8, 2, 5*time.Millisecond, 5*w.TTL },
}
