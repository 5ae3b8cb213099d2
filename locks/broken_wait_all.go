package locks

import "hammerlock/history"

var waitAll = Spec{
	Name:   "wait-all",
	Doc:    "redlock that waits for every site as long as the client library does",
	Source: "redlocks without a timeout for each site",
	Sites:  ManySites,
	Broken: "one hung site eats up the lease: with leases under the client's timeout no worker gets the lock any more",
	Expect: []Expectation{{Cause: history.Stuck, Scenario: "minority-hung"}, {Cause: history.Deadlock}},
	Claims: redlock.Claims,
	Open: func(e Env) (Lock, error) {
		l := newRedlock(e)
		l.patient = true
		return l, nil
	},
}
