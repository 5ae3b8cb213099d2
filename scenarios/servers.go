package scenarios

import (
	"time"

	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/workload"
)

var minorityHung = Scenario{
	Name: "minority-hung",
	Doc: "a minority of the sites does not answer, from the start to the end, and leases are shorter than the " +
		"patience of many a client",
	Faults:    []string{"pause-minority@200ms"},
	MustJudge: []string{history.Liveness},
	Duration:  3 * time.Second,
	Shape:     func(w *workload.Shape) { w.Workers, w.TTL = 8, w.TTL*5/8 },
}

var minorityRefuses = Scenario{
	Name: "minority-refuses",
	Doc: "a minority of the sites answers every command that needs memory with an error, " +
		"from the start to the end",
	Faults:   []string{"refuse-writes@200ms"},
	Duration: 2500 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Workers = 8 },
}

var threeSites = Scenario{
	Name:     "three-sites",
	Doc:      "three sites in place of five, and one of them does not answer: two are a majority",
	NotFor:   several,
	Sites:    3,
	Faults:   []string{"pause-minority@200ms"},
	Duration: 2500 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Workers = 4 },
}

var fourSites = Scenario{
	Name:     "four-sites",
	Doc:      "four sites in place of five, which can be divided into two pairs: neither is a majority",
	NotFor:   several,
	Sites:    4,
	Duration: 2 * time.Second,
	Shape:    func(w *workload.Shape) { w.Workers, w.Hold = 8, 5*time.Millisecond },
}

// A minority of the sites is silent during the grant, and another minority during the extension. So some sites that
// granted a lock cannot extend it. The time between the two silences is shorter than a hold.
var failingSites = Scenario{
	Name: "failing-sites",
	Doc: "leases are lengthened while one minority of the sites after another does not answer: " +
		"a majority that has granted it must lengthen it",
	NotFor:   both(several, plain),
	Faults:   []string{"pause-minority@200ms", "heal@800ms", "pause-minority@1100ms", "heal@1700ms"},
	Duration: 3200 * time.Millisecond,
	Leases:   1,
	Shape:    func(w *workload.Shape) { w.Workers, w.Keys, w.Hold, w.Extend, w.Extensions = 24, 12, TTL/4, TTL, 12 },
}

var serverHangs = Scenario{
	Name: "server-hangs",
	Doc: "a server stops for longer than a lease, while leases are lengthened; one in eight visits is called " +
		"off, also under a call that has no answer",
	NotFor:   both(alone, plain),
	Faults:   []string{"pause-primary@300ms", "heal@900ms", "pause-primary@1300ms", "heal@1900ms"},
	Wire:     []string{"pause-primary:600ms@granted:5", "pause-primary:600ms@released:15"},
	Duration: 3600 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Workers, w.Keys, w.Hold, w.Extend, w.CancelOneIn = 24, 8, TTL/4, TTL, 8 },
}

// There is only one page, and its slot moves. A client that does not find the new server gets no lock at all.
var movingSlot = Scenario{
	Name: "moving-slot",
	Doc: "the slot of the lock moves to another server of a cluster, and to the next, under holders and waiters. No " +
		"key is lost, and a client must find it",
	NotFor:   expires,
	Faults:   []string{"move-slot@200ms", "move-slot@800ms"},
	Duration: 2900 * time.Millisecond,
	Leases:   1,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Hold, w.Spread, w.Think, w.Extend = 12, 10*time.Millisecond, 0.9, 30*time.Millisecond, w.TTL
		w.Wait = 4 * time.Second
	},
}

var slowServer = Scenario{
	Name:     "slow-server",
	Doc:      "a server is slow",
	NotFor:   alone,
	Faults:   []string{"slow-server@300ms"},
	Duration: 3400 * time.Millisecond,
	Shape:    func(w *workload.Shape) { w.Workers = 8 },
}

var slowSite = Scenario{
	Name: "slow-site",
	Doc: "one of several sites answers about when the lease ends, again and again, and the others at once: " +
		"who waits for it must not count the lease from then",
	NotFor: faults.When(func(s faults.Scene) bool { return s.Sites < 3 },
		"it is about one of several sites: slow-grant and slow-server ask the same of one alone"),
	Faults:   []string{"slow-server@200ms", "slow-server@900ms"},
	Duration: 2200 * time.Millisecond,
	Shape: func(w *workload.Shape) {
		w.Workers, w.Keys, w.TTL, w.Retry = 8, 4, 220*time.Millisecond, 10*time.Millisecond
	},
}
