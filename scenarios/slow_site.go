package scenarios

import (
	"time"

	"hammerlock/faults"
	"hammerlock/workload"
)

var slowSite = Scenario{
	Name: "slow-site",
	Doc: "one of several sites answers about when the lease ends, again and again, and the others at once: who waits for it must not " +
		"count the lease from then",
	For: faults.When(func(s faults.Scene) bool { return s.Sites < 3 },
		"it is about one of several sites: slow-grant and slow-server ask the same of one alone"),
	Faults:   []string{"slow-server@200ms", "slow-server@900ms"},
	Duration: 2200 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.TTL, w.Retry = 8, 4, 220*time.Millisecond, 10*time.Millisecond
	},
}
