package scenarios

import (
	"time"

	"hammerlock/history"
	"hammerlock/workload"
)

var renewal = Scenario{
	Name: "renewal",
	Doc: "holds of more than a lease, which is no whole number of seconds and which the lock has to renew. Answers " +
		"take a while now and then: the next holder comes before the last one has heard that it is over",
	NotFor:   renews,
	Faults:   []string{"delay:15ms@700ms", "heal@2600ms"},
	Duration: 5600 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.TTL = Renewed * 17 / 10
		w.Workers, w.Keys, w.Hold = 40, 20, w.TTL*3/2
	},
}

// The fault cut-holder begins at the first grant after its planned time. Holds differ in length, so a grant always
// comes soon. If all holds had the same length, all pages would be granted together, and the next grant would come
// only at the planned end of the cut.
var renewalCut = Scenario{
	Name: "renewal-cut",
	Doc: "a process is cut off from the servers for longer than a lease that it renews: " +
		"its holders must be told in time",
	NotFor:    renews,
	Processes: 2,
	Faults:    []string{"cut-holder@1s", "heal@2600ms", "cut-holder@3200ms", "heal@4800ms"},
	Duration:  7400 * time.Millisecond,
	Shape:     func(w *workload.Shape) { w.Workers, w.Keys, w.Hold, w.Spread = 48, 24, 2*Renewed, 0.5 },
}

var renewalHangs = Scenario{
	Name:     "renewal-hangs",
	Doc:      "a server stops for longer than a lease, while leases are renewed: holders must be told in time",
	NotFor:   both(alone, renews),
	Faults:   []string{"pause-primary@300ms", "heal@1600ms", "pause-primary@2600ms", "heal@3900ms"},
	Duration: 6500 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Workers, w.Keys, w.Hold = 48, 24, 2*Renewed },
}

// Each page is a separate election, because a single election has too few terms for a verdict. Every process
// has a candidate for each page. A candidate waits long, and a term is many times as long as one load and store
// of the leader.
var leader = Scenario{
	Name: "leader",
	Doc: "elections with a candidate in each of three processes. A leader counts again and again for some leases. " +
		"One is cut off, one paused for longer than a lease, and one killed: it must be told, or heed its pause, " +
		"and another must be elected",
	NotFor:    renews,
	Processes: 3,
	Faults:    []string{"cut-holder:loaded@700ms", "heal@2000ms", "stop-process@2600ms", "kill-process@4500ms"},
	MustJudge: []string{history.Liveness},
	Duration:  7200 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Faithful = 54, 18, true
		w.Term, w.Spread, w.Hold, w.Wait, w.Retry = 2*Renewed, 0.5, 50*time.Millisecond, 10*time.Second,
			25*time.Millisecond
	},
}
