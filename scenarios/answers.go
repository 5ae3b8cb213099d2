package scenarios

import (
	"time"

	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/workload"
)

// Visits last longer than the 450 ms for which connections are refused. So a holder that wrongly believes in an
// extension is still busy when another worker gets the lock.
var lostExtensions = Scenario{
	Name:  "lost-extensions",
	Class: LostAnswers,
	Doc: "leases are lengthened while answers are lost and connections break: what was not lengthened for certain " +
		"ends in its time",
	NotFor: both(plain, faults.When(func(s faults.Scene) bool { return s.Sites > 1 },
		"failing-sites asks the same of several sites")),
	Faults:   []string{"drop-reply:4@100ms", "reset:450ms@400ms", "drop-reply:3@1000ms", "reset:450ms@1300ms"},
	Duration: 3200 * time.Millisecond,
	Leases:   1,
	Shape:    func(w *workload.Shape) { w.Workers, w.Keys, w.Hold, w.Extend, w.Extensions = 36, 12, TTL/4, TTL, 10 },
}

var ambiguous = Scenario{
	Name:     "ambiguous",
	Class:    LostAnswers,
	Doc:      "answers are lost: what was done is not known to who asked for it",
	NotFor:   expires,
	Faults:   []string{"drop-reply:20@300ms", "drop-reply:20@700ms", "drop-reply:20@1100ms"},
	Wire:     []string{"cut@granted/10", "cut@released/15"},
	Duration: 2600 * time.Millisecond,
	Leases:   1,
	Shape:    func(w *workload.Shape) { w.Keys = 4 },
}

var failedRelease = Scenario{
	Name:  "failed-release",
	Class: LostAnswers,
	Doc: "connections break, also under holders who give the lock back: what they could not give back " +
		"ends with its lease, and is renewed no more",
	NotFor:    expires,
	Faults:    []string{"reset@200ms", "reset@300ms"},
	MustJudge: []string{history.Liveness},
	Duration:  3300 * time.Millisecond,
	Leases:    1,
	Shape:     func(w *workload.Shape) { w.Keys, w.Hold = 8, 5*time.Millisecond },
}

var sleepers = Scenario{
	Name: "sleepers",
	Doc: "all come at once, then none for a while: each of those who wait must be woken by the one before " +
		"it, also one that needs a moment before it begins to wait. Leases are so long that who sleeps " +
		"until one ends is seen",
	NotFor:    refused,
	Faults:    []string{"stall-worker:300ms@refused", "stall-worker:300ms@refused", "stall-worker:300ms@refused"},
	MustJudge: []string{history.Liveness},
	Duration:  1600 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Hold, w.Think, w.TTL, w.Wait = 48, 16, 0, 1300*time.Millisecond, 3*time.Second,
			4*time.Second
	},
}

// The waiters that give up arrive first. They have left when the first holder releases the lock.
var goneWaiters = Scenario{
	Name: "gone-waiters",
	Doc: "many come at once, every second one gives up before the first holder is done, and then no worker comes " +
		"for a while: those who stay are not to sleep for longer than a lease because others before them have left",
	MustJudge: []string{history.Liveness},
	Duration:  1600 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Hold, w.Think, w.Permits = 72, 12, 250*time.Millisecond, 1300*time.Millisecond, 2
		w.TTL, w.Wait, w.Hurry = max(w.TTL, 2*TTL), 4*time.Second, 120*time.Millisecond
	},
}

var lostWakeup = Scenario{
	Name: "lost-wakeup",
	Doc: "all come at once, connections of those who wait for a message are closed while the lock is held, " +
		"and then no worker comes for longer than any lock may be idle, to wake them: " +
		"none may sleep for longer than a lease",
	Faults:    []string{"cut-subscriptions@2050ms", "cut-subscriptions@2250ms"},
	MustJudge: []string{history.Liveness},
	Duration:  3700 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Hold, w.Think, w.Wait = 64, 8, 100*time.Millisecond, 1800*time.Millisecond, 5*time.Second
	},
}

var cutOff = Scenario{
	Name: "cut-off",
	Doc: "a process is cut off from the servers with the lock in its hands, for longer than the lease. " +
		"Its holders heed their deadlines",
	NotFor:    expires,
	Processes: 2,
	Faults:    []string{"cut-holder@300ms", "heal@1100ms"},
	Wire:      []string{"delay:1s@granted/20", "delay:1s@extended/5"},
	MustJudge: []string{history.Liveness},
	Duration:  4000 * time.Millisecond,
	Leases:    1,
	Shape:     func(w *workload.Shape) { w.Workers = 8 },
}
