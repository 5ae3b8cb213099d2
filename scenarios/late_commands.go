package scenarios

import (
	"time"

	"hammerlock/workload"
)

// Of locks that take one command for a visit's grant and one for its release, the release is late that was called in
// time. Of others a lease ends between two commands, whatever the client is written in. Threads that share what marks a
// hold meet each other.
var lateCommands = Scenario{
	Name: "late-commands",
	Doc: "one in twelve commands takes longer than a lease to arrive, as of a client that is stopped before it, also between two commands of " +
		"its lock; many threads of one process hold the locks",
	For:      plain,
	Faults:   []string{"late-command@100ms", "heal@1300ms"},
	Duration: 2500 * time.Millisecond,
	Leases:   1,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Hold, w.Spread, w.Retry = 48, 8, 60*time.Millisecond, 0.5, 10*time.Millisecond
	},
}
