package scenarios

import (
	"time"

	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/workload"
)

var contention = Scenario{
	Name:      "contention",
	Class:     Contention,
	Doc:       "many workers want one lock, and nothing breaks",
	MustJudge: []string{history.Fairness},
	Duration:  1500 * time.Millisecond,
}

var twoProcesses = Scenario{
	Name:  "two-processes",
	Class: Contention,
	Doc: "the workers live in two processes, which share nothing. The suite's clients speak RESP 2 in one and RESP 3 " +
		"in the other",
	Processes: 2,
	Duration:  1500 * time.Millisecond,
}

var sharedObject = Scenario{
	Name: "shared-object",
	Doc: "all workers of a process use one object of the lock, on several pages. Some are late, " +
		"heed their deadline and give the lock back",
	NotFor:   shared,
	Faults:   []string{"stall-worker@400ms", "stall-worker@1100ms"},
	Duration: 2 * time.Second,
	Shape:    func(w *workload.Shape) { w.Workers, w.Keys, w.Hold, w.Shared = 12, 4, 5*time.Millisecond, true },
}

var extensions = Scenario{
	Name:     "extensions",
	Doc:      "holds of several leases, each lengthened before it ends",
	NotFor:   plain,
	Duration: 2500 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Workers, w.Keys, w.Hold, w.Extend, w.Extensions = 24, 12, TTL/2, TTL, 4 },
}

var twoLeases = Scenario{
	Name: "two-leases",
	Doc: "every second worker asks for leases twice as long, as in two services that are configured " +
		"differently: a lease is its holder's",
	NotFor:    plain,
	Processes: 2,
	Duration:  2200 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Hold, w.Spread, w.TwoTTLs = 36, 9, TTL*3/4, 0.5, true
		w.Permits, w.Retry = 2, 5*time.Millisecond
	},
}

var reentry = Scenario{
	Name:     "reentry",
	Doc:      "every holder acquires again before it stores, up to three times one after the other",
	NotFor:   reenter,
	Duration: 2 * time.Second,
	Shape:    func(w *workload.Shape) { w.Reenter, w.Reentries = 1, 3 },
}

var crossing = Scenario{
	Name: "crossing",
	Doc: "some callers want one to three of three keys at once, and name them in any order: " +
		"they must not block each other, and what is refused must hold up no other",
	NotFor:    sets,
	MustJudge: []string{history.Liveness},
	Duration:  4 * time.Second,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.TTL, w.Wait, w.Hold = 6, workload.MostPages, 3*time.Second, 3*time.Second,
			4*time.Millisecond
	},
}

var cancelled = Scenario{
	Name: "cancelled",
	Doc: "one in eight visits is called off at a random moment, also in the middle of an acquire, " +
		"an extension or a release",
	NotFor:   expires,
	Duration: 2400 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Keys, w.CancelOneIn, w.Extend = 8, 8, w.TTL },
}

var cost = Scenario{
	Name:       "cost",
	Doc:        "some wait, in two processes, while another one holds the lock: they must not storm the servers",
	NotFor:     own,
	CostJudged: true,
	Alone:      true,
	Processes:  2,
	Duration:   1800 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Hold, w.Think, w.Retry = 4, 60*time.Millisecond, 40*time.Millisecond, 20*time.Millisecond
	},
}

var clocks = Scenario{
	Name: "clocks",
	Doc: "the clocks of two clients differ by some leases, and that of one steps, also between the renewals of a " +
		"hold: nothing but the servers' clock may decide who holds the lock (programs whose language asks the C " +
		"library for the time)",
	NotFor: faults.When(func(s faults.Scene) bool { return !s.Clocked || !s.Can.Own },
		"there is no clock to set: the lock is in no program of its own, beside servers of the suite's, "+
			"or there is no C compiler"),
	Processes: 2,
	Duration:  2200 * time.Millisecond,
	Leases:    4,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Hold, w.Skew = 8, 2, 5*time.Millisecond, 5*w.TTL
		if w.TTL > TTL {
			w.Workers, w.Keys, w.Hold, w.Spread = 32, 12, w.TTL*3/2, 0.5
		}
	},
}

var manyKeys = Scenario{
	Name:  "many-keys",
	Class: Contention,
	Alone: true,
	Doc: "2000 locks, few of them popular, most taken now and then: what is left behind adds up. Some names begin " +
		"with others, some have a hash tag, some are long and have odd bytes",
	Duration: 1500 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.Bare, w.Hold, w.Popularity = 32, 2000, true, 0, workload.Zipf
	},
}
