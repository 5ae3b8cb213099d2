package scenarios

import (
	"time"

	"hammerlock/workload"
)

var serverHangs = Scenario{
	Name:     "server-hangs",
	Doc:      "a server stops for longer than a lease, while leases are lengthened",
	For:      plain,
	Faults:   []string{"pause-primary@1s", "heal@1600ms", "pause-primary@3s", "heal@3600ms"},
	Duration: 7 * time.Second,
	Shape:    func(w *workload.Shape) { w.Workers, w.Keys, w.Hold, w.Extend = 24, 8, TTL/4, TTL },
}
