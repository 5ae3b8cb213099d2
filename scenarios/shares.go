package scenarios

import (
	"time"

	"hammerlock/faults"
	"hammerlock/workload"
)

var readers = Scenario{
	Name: "readers",
	Doc: "many readers and some writers: a reader looks when it comes and before it goes, " +
		"and no writer may write meanwhile",
	NotFor:   reads,
	Duration: 2 * time.Second,
	Shape:    func(w *workload.Shape) { w.Readers, w.Hold, w.Spread = 0.8, 3*time.Millisecond, 0.9 },
}

var upgrade = Scenario{
	Name:     "upgrade",
	Doc:      "readers become writers, and store one more than they saw as readers",
	NotFor:   claim(func(s faults.Scene) bool { return s.Claims.Upgrades }, "a reader can become the writer"),
	Duration: 2 * time.Second,
	Shape:    func(w *workload.Shape) { w.Workers, w.Readers, w.Upgrade, w.Think = 6, 0.9, 1, 2*time.Millisecond },
}

var steadyReaders = Scenario{
	Name:     "steady-readers",
	Doc:      "readers come and go, and one is always there; now and then a writer comes",
	NotFor:   reads,
	Duration: 4 * time.Second,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Readers, w.Hold, w.Spread, w.Wait = 32, 0.99, 60*time.Millisecond, 0.9, 6*time.Second
	},
}

var permits = Scenario{
	Name:     "permits",
	Doc:      "visits ask for one permit of a semaphore, or two, which not all can have",
	NotFor:   claim(func(s faults.Scene) bool { return s.Claims.Permits > 0 }, "it is a semaphore"),
	Duration: 2 * time.Second,
	Shape:    func(w *workload.Shape) { w.Permits, w.Hold, w.Spread = 2, 2*time.Millisecond, 0.9 },
}
