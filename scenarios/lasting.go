package scenarios

import (
	"time"

	"hammerlock/workload"
)

var variedExtensions = Scenario{
	Name:     "varied-extensions",
	Doc:      "holders extend early and late, to a shorter and a longer lease than they have, and hold to the new end",
	NotFor:   plain,
	Duration: 3200 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Varied, w.Retry, w.Wait = 48, 24, true, 5*time.Millisecond, 4*time.Second
	},
}

var refusedWrites = Scenario{
	Name:  "refused-writes",
	Class: LostAnswers,
	Doc: "a server answers each write with an error for a moment, and then it forgets its scripts: no refused " +
		"command was a grant or a release",
	NotFor: both(alone, expires),
	Faults: []string{"no-writes@300ms", "heal@700ms", "no-writes@1000ms", "heal@1500ms", "script-flush@1700ms",
		"script-flush@1900ms"},
	Duration: 2600 * time.Millisecond,
	Leases:   1,
	Shape: func(w *workload.Shape) {
		w.Keys, w.Hold, w.Spread, w.Retry = 6, 20*time.Millisecond, 0.9, 5*time.Millisecond
	},
}

// A pause of writes is longer than a lease, so all leases that ran at its beginning end during it. A client must
// not take a successful read during the pause for the answer to its write. If it does, it counts a new lease from
// the read, and this lease is still valid at the end of the pause.
var heldWrites = Scenario{
	Name: "held-writes",
	Doc: "a server holds all writes back for longer than a lease but answers reads, and later it has no memory left: " +
		"a read says nothing about a write that has no answer",
	NotFor: both(alone, plain),
	Faults: []string{"pause-writes@300ms", "heal@750ms", "pause-writes@1300ms", "heal@1750ms", "no-writes:OOM@2200ms",
		"heal@2500ms"},
	Duration: 3400 * time.Millisecond,
	Leases:   1,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Hold, w.Spread, w.Extend, w.Extensions = 36, 12, TTL/4, 0.5, TTL, 6
		w.Retry = 10 * time.Millisecond
	},
}

// A lock that renews its leases gets short ones, so that a hold needs many renewals. Other locks get leases of 30 s.
var long = Scenario{
	Name: "long",
	Doc: "holds of more than ten seconds, with leases of half a minute or many renewals, and waiters who are as " +
		"patient",
	NotFor:   expires,
	Duration: 11600 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Hold, w.Wait, w.Retry = 56, 28, 10700*time.Millisecond, 40*time.Second,
			200*time.Millisecond
		if w.TTL == TTL {
			w.TTL = 30 * time.Second
		}
	},
}
