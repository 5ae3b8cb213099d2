package scenarios

import (
	"time"

	"hammerlock/workload"
)

var lostWakeup = Scenario{
	Name:     "lost-wakeup",
	Doc:      "long holds, many who wait, and connections of those who wait for a message are closed",
	Faults:   []string{"cut-subscriptions@500ms", "cut-subscriptions@1s", "cut-subscriptions@1500ms"},
	Duration: 5 * time.Second,
	Shape:    func(w *workload.Shape) { w.Workers, w.Hold = 24, 20*time.Millisecond },
}
