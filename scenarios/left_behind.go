package scenarios

import (
	"time"

	"hammerlock/history"
	"hammerlock/workload"
)

// The rate of readers is a compromise: the lock is free most of the time, but never for long.
var deadReader = Scenario{
	Name:  "dead-reader",
	Class: Crashes,
	Doc: "readers come now and then, and some of them die; a writer must be granted the lock " +
		"between those who live",
	NotFor:    reads,
	Assumed:   true,
	Faults:    []string{"crash-worker@200ms", "crash-worker@250ms", "crash-worker@300ms"},
	MustJudge: []string{history.Liveness},
	Duration:  4200 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Rate, w.Readers, w.Hold, w.Spread = 60, 6, 120, 0.8, 6*time.Millisecond, 0.9
		w.Wait, w.Retry = 4*time.Second, 10*time.Millisecond
	},
}
