package scenarios

import (
	"time"

	"hammerlock/history"
	"hammerlock/workload"
)

var crash = Scenario{
	Name:  "crash",
	Class: Crashes,
	Doc: "a holder dies, and nothing else happens: another worker must be granted the lock " +
		"when its lease is over",
	Assumed:   true,
	Faults:    []string{"crash-worker@300ms"},
	Wire:      []string{"kill-program@granted:5"},
	MustJudge: []string{history.Liveness},
	Duration:  2400 * time.Millisecond,
	Shape:     func(w *workload.Shape) { w.Workers = 8 },
}

var waiterCrash = Scenario{
	Name:      "waiter-crash",
	Class:     Crashes,
	Doc:       "workers die that wait for the lock, also at the head of a queue: no other worker may wait for them",
	NotFor:    refused,
	Assumed:   true,
	Faults:    []string{"crash-worker@refused", "crash-worker@refused", "crash-worker@refused"},
	MustJudge: []string{history.Liveness},
	Duration:  2400 * time.Millisecond,
	Shape:     func(w *workload.Shape) { w.Workers, w.Hold = 16, 10*time.Millisecond },
}

var processCrash = Scenario{
	Name:      "process-crash",
	Class:     Crashes,
	Doc:       "a process dies with the lock in its hands, and with it all who waited there",
	Processes: 2,
	Assumed:   true,
	Faults:    []string{"kill-process@300ms"},
	MustJudge: []string{history.Liveness},
	Duration:  2400 * time.Millisecond,
	Shape:     func(w *workload.Shape) { w.Workers = 8 },
}

// lossy is the load around the loss of a server. If the lock renews its leases, most holds are longer than one
// lease, including holds that begin after the loss.
func lossy(w *workload.Shape) {
	w.Workers, w.Keys, w.Hold = 24, 8, 5*time.Millisecond
	if w.TTL > TTL {
		w.Workers, w.Keys, w.Hold, w.Spread = 48, 16, w.TTL*11/10, 0.5
	}
}

// Both processes see the death of the server. A lock that falls back to the memory of its process while the server
// is dead does not exclude the other process.
var forgetful = Scenario{
	Name: "forgetful",
	Doc: "a server dies, and comes back without its keys when every lease is over. Two processes see it; what is " +
		"granted then is renewed as before, and holders are late",
	NotFor:    expires,
	Processes: 2,
	Faults:    []string{"restart-late@300ms", "stall-worker@1600ms", "stall-worker@1900ms"},
	Wire:      []string{"restart-late@granted:5"},
	MustJudge: []string{history.Liveness},
	Duration:  3600 * time.Millisecond,
	Leases:    2,
	Shape:     lossy,
}

var takenOver = Scenario{
	Name: "failover",
	Doc: "a replica takes the primary's place when every lease is over: a client must find the new primary, and be " +
		"right there with late holders and renewals",
	NotFor:    expires,
	Processes: 2,
	Faults:    []string{"failover-late@300ms", "stall-worker@4500ms", "stall-worker@5200ms"},
	Duration:  8 * time.Second,
	Leases:    2,
	Shape:     lossy,
}
