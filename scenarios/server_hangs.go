package scenarios

import (
	"time"

	"hammerlock/workload"
)

var serverHangs = Scenario{
	Name:     "server-hangs",
	Doc:      "a server stops for longer than a lease, while leases are lengthened",
	For:      both(alone, plain),
	Faults:   []string{"pause-primary@300ms", "heal@900ms", "pause-primary@1300ms", "heal@1900ms"},
	Duration: 3600 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Workers, w.Keys, w.Hold, w.Extend = 24, 8, TTL/4, TTL },
}
