package scenarios

import (
	"time"

	"hammerlock/workload"
)

var lateHolder = Scenario{
	Name:     "late-holder",
	Class:    LateHolders,
	Doc:      "holders are late now and then. They heed their deadline and do not store, but they give the lock back",
	NotFor:   expires,
	Faults:   []string{"stall-worker@granted", "stall-worker@600ms", "stall-worker@1200ms", "stall-worker@1700ms"},
	Wire:     []string{"pause-program:2s@granted:5", "pause-program:2s@granted:25"},
	Duration: 2600 * time.Millisecond,
	Leases:   4,
	Shape:    func(w *workload.Shape) { w.Workers = 8 },
}

var lateRelease = Scenario{
	Name:  "late-release",
	Class: LateHolders,
	Doc: "holds of about a lease, while messages take their time: leases end on the way of a release, " +
		"and between its commands. Some of the locks' names begin with others",
	NotFor:   plain,
	Faults:   []string{"delay@100ms", "heal@2300ms"},
	Duration: 3400 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Bare, w.Hold, w.Spread, w.Retry = 32, 12, true, TTL*9/10, 0.2, 10*time.Millisecond
	},
}

var lateExtension = Scenario{
	Name:     "late-extension",
	Doc:      "leases end on the way of an extension, and between its commands: messages take their time",
	NotFor:   plain,
	Faults:   []string{"delay@100ms", "heal@2300ms"},
	Duration: 3400 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Retry = 40, 20, 10*time.Millisecond
		w.Hold, w.Spread, w.Extend, w.Extensions = TTL*9/10, 0.2, TTL, 2
	},
}

// A late command tests two kinds of locks. 1. A lock grants with one command and releases with one: the release is sent
// in time and arrives after the end of the lease. 2. A lock needs more commands: its lease ends between two of them.
//
// The workers are threads of one process. If they share the value that marks a hold, they disturb each other's holds.
var lateCommands = Scenario{
	Name: "late-commands",
	Doc: "one in twelve commands takes longer than a lease to arrive, as of a client that is stopped before it, also " +
		"between two commands of its lock; later some of each kind arrive when their clients have given them up. " +
		"Many threads of one process hold the locks, and the servers have lost their scripts before",
	NotFor: plain,
	Faults: []string{"script-flush@300ms", "late-command@350ms", "heal@1600ms", "abandoned-command@2100ms",
		"heal@4400ms"},
	Wire:     []string{"delay:400ms@read/15", "delay:400ms@released/15"},
	Duration: 5600 * time.Millisecond,
	Leases:   1,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Hold, w.Spread, w.Retry = 48, 8, 60*time.Millisecond, 0.5, 30*time.Millisecond
		w.Extend, w.Faithful = w.TTL, true
	},
}

var lateWriter = Scenario{
	Name:  "late-writer",
	Class: LateHolders,
	Doc: "holders are late now and then, and store all the same: the counter must refuse it " +
		"by their fencing tokens",
	NotFor:   fences,
	Assumed:  true,
	Counter:  workload.RedisFenced,
	Faults:   []string{"stall-worker@300ms", "stall-worker@1200ms", "stall-worker@2100ms"},
	Duration: 4 * time.Second,
	Shape:    func(w *workload.Shape) { w.Workers, w.HeedDeadline = 8, false },
}

var slowFence = Scenario{
	Name: "slow-fence",
	Doc: "answers take about as long as the lease, and holders store all the same: the fencing token must be of " +
		"the same moment as the grant, however late either is heard of",
	NotFor:  fences,
	Assumed: true,
	Counter: workload.RedisFenced,
	// A store with an old token does harm only if the next holder has stored before it. The next holder is fast
	// enough only when a delay has just ended, so delays end often.
	Faults: []string{"delay:120ms@200ms", "heal@500ms", "delay:120ms@800ms", "heal@1100ms", "delay:120ms@1400ms",
		"heal@1700ms", "delay:120ms@2000ms", "heal@2300ms", "delay:120ms@2600ms", "heal@2900ms"},
	Duration: 3700 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.TTL, w.Retry, w.HeedDeadline = 64, 8, 30*time.Millisecond, 10*time.Millisecond, false
	},
}

var comeback = Scenario{
	Name:  "comeback",
	Class: LateHolders,
	Doc: "holders come back when their lease is over, most to locks that no other worker has taken meanwhile, " +
		"and extend it",
	NotFor:    expires,
	Processes: 2,
	Faults:    []string{"stall-worker@200ms", "stop-process@800ms", "stop-process@1700ms"},
	Duration:  4700 * time.Millisecond,
	Leases:    3,
	Shape:     func(w *workload.Shape) { w.Workers, w.Keys, w.Hold, w.Extend = 4, 40, 10*time.Millisecond, w.TTL },
}

var slowGrant = Scenario{
	Name:     "slow-grant",
	Doc:      "answers take about as long as the lease: many a grant is over when it is heard of",
	NotFor:   plain,
	Faults:   []string{"delay:80ms@200ms", "heal@1800ms"},
	Duration: 3100 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Keys, w.TTL, w.Retry = 4, 60*time.Millisecond, 10*time.Millisecond },
}

var lateProcess = Scenario{
	Name:  "late-process",
	Class: LateHolders,
	Doc: "a process stops with the lock in its hands, and goes on when its lease is over. " +
		"Its holders heed their deadlines",
	NotFor:    expires,
	Processes: 2,
	Faults:    []string{"stop-process@300ms", "stop-process@1200ms"},
	Duration:  4200 * time.Millisecond,
	Leases:    2,
	Shape:     func(w *workload.Shape) { w.Workers = 8 },
}
