package scenarios

import (
	"time"

	"hammerlock/faults"
	"hammerlock/workload"
)

// A visit outlasts the time in which connections break, for only then another worker can be granted the lock beside a holder that believes too much.
var lostExtensions = Scenario{
	Name:     "lost-extensions",
	Class:    LostAnswers,
	Doc:      "leases are lengthened while answers are lost and connections break: what was not lengthened for certain ends in its time",
	For:      both(plain, faults.When(func(s faults.Scene) bool { return s.Sites > 1 }, "failing-sites asks the same of several sites")),
	Faults:   []string{"drop-reply:4@100ms", "reset:450ms@400ms", "drop-reply:3@1000ms", "reset:450ms@1300ms"},
	Duration: 3200 * time.Millisecond,
	Leases:   1,
	Shape:    func(w *workload.Shape) { w.Workers, w.Keys, w.Hold, w.Extend, w.Stays = 36, 12, TTL/4, TTL, 10 },
}
