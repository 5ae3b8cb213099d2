package locks

import "hammerlock/history"

var halfQuorum = Spec{
	Name:   "half-quorum",
	Doc:    "redlock that takes half of the sites, rounded down, for a majority",
	Source: "n/2 where n/2+1 was meant",
	Sites:  ManySites,
	Broken: "two of five sites are enough, and there are two disjoint pairs",
	Expect: []Expectation{{Cause: history.DoubleGrant}},
	Claims: redlock.Claims,
	Open:   func(e Env) (Lock, error) { return withQuorum(e, max(len(e.Sites)/2, 1)), nil },
}

// withQuorum is redlock with another number of sites for a majority.
func withQuorum(e Env, sites int) *redlockLock {
	l := newRedlock(e)
	l.quorum = sites
	return l
}
