package scenarios

import (
	"time"

	"hammerlock/history"
	"hammerlock/workload"
)

var sleepers = Scenario{
	Name: "sleepers",
	Doc: "all come at once, then none for a while: each of those who wait must be woken by the one before it, also one that needs " +
		"a moment before it begins to wait. Leases are so long that who sleeps until one ends is seen",
	For:      refused,
	Faults:   []string{"stall-worker:300ms@refused", "stall-worker:300ms@refused", "stall-worker:300ms@refused"},
	Shows:    []string{history.Liveness},
	Duration: 1600 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Hold, w.Think, w.TTL, w.Wait = 48, 16, 0, 1300*time.Millisecond, 3*time.Second, 4*time.Second
	},
}
