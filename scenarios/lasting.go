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

// A lease that the lock renews is short, so that a hold has about forty renewals.
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
