package scenarios

import (
	"time"

	"hammerlock/workload"
)

var lateExtension = Scenario{
	Name:     "late-extension",
	Doc:      "leases end on the way of an extension, and between its commands: messages take their time",
	For:      plain,
	Faults:   []string{"delay@100ms", "heal@2300ms"},
	Duration: 3400 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Retry = 40, 20, 10*time.Millisecond
		w.Hold, w.Spread, w.Extend, w.Stays = TTL*9/10, 0.2, TTL, 2
	},
}
