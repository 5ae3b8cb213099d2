package scenarios

import (
	"time"

	"hammerlock/faults"
	"hammerlock/workload"
)

// rounds is the number of times that the load comes and goes. Three rests show growth from one rest to the next
// twice. Memory that is allocated only once makes the client grow only once.
const rounds = 3

// The workers have processes of their own, so that only the lock's clients make these processes grow.
var wear = Scenario{
	Name: "wear",
	Doc: "locks are taken and refused, then none is wanted for longer than a lease, three times: " +
		"a client may keep nothing of each call",
	NotFor: faults.When(func(s faults.Scene) bool { return s.Nodes == 1 && s.Claims.Renews },
		"wear-renewals asks the same, and more"),
	Processes: 2,
	Duration:  rounds * 1150 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Keys, w.Wait, w.Retry, w.Rounds, w.Rest = 4, 20*time.Millisecond, 4*time.Millisecond, rounds,
			500*time.Millisecond
	},
}

// All workers take their locks at the same time, and lose them before they are done. No worker requests a lock that
// another worker may still believe to have.
var wearRenewals = Scenario{
	Name: "wear-renewals",
	Doc: "many locks are taken, and a server stops for longer than their leases, which the lock renews; " +
		"then none is wanted, three times: a client may keep nothing of a hold that it could not renew",
	NotFor:    both(alone, renews),
	Processes: 2,
	Unused:    true,
	Faults: []string{"pause-primary@300ms", "heal@1100ms", "pause-primary@2900ms", "heal@3700ms",
		"pause-primary@5500ms", "heal@6300ms"},
	Duration: rounds * 2600 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Hold, w.Wait = 96, 192, 3*Renewed/2, 20*time.Millisecond
		w.Rounds, w.Rest = rounds, 2300*time.Millisecond
	},
}
