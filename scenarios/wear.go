package scenarios

import (
	"fmt"
	"time"

	"hammerlock/faults"
	"hammerlock/workload"
)

// rounds is how often the load comes and goes: two steps from one rest to the next tell growth from what is made once.
const rounds = 3

// In a process of their own nothing but the lock's clients grows.
var wear = Scenario{
	Name:      "wear",
	Doc:       "locks are taken and refused, then none is wanted for longer than a lease, three times: a client may keep nothing of each call",
	NotFor:    faults.When(func(s faults.Scene) bool { return s.Sites == 1 && s.Claims.Renews }, "wear-renewals asks the same, and more"),
	Processes: 2,
	Duration:  rounds * 1150 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.TTL, w.Keys, w.Wait, w.Retry, w.Rounds = TTL, 4, 20*time.Millisecond, 4*time.Millisecond, rounds
	},
}

var wearRenewals = Scenario{
	Name:      "wear-renewals",
	Doc:       "the same, while a server stops for longer than a lease, twice each time: a client may keep nothing of a hold that it could not renew",
	NotFor:    both(alone, renews),
	Processes: 2,
	Faults:    cuts(),
	Duration:  rounds * 2650 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.TTL, w.Workers, w.Keys, w.Hold, w.Wait, w.Rounds = TTL, 96, 192, 2*TTL, 20*time.Millisecond, rounds
	},
}

// cuts are two a round.
func cuts() (all []string) {
	for i := range rounds {
		for _, at := range []int{100, 700} {
			all = append(all, fmt.Sprintf("pause-primary@%dms", 2650*i+at), fmt.Sprintf("heal@%dms", 2650*i+at+450))
		}
	}
	return all
}
