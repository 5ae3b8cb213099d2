package locks

import "hammerlock/history"

var roundedQuorum = Spec{
	Name:   "rounded-quorum",
	Doc:    "redlock that takes half of the sites, rounded up, for a majority",
	Source: "redis.io, Distributed Locks with Redis: N/2+1, with an N that its examples never let be even",
	Sites:  ManySites,
	Broken: "that is a majority of three or five sites; of four, two are enough, and there are two disjoint pairs",
	Expect: []Expectation{{Cause: history.DoubleGrant, Scenario: "four-sites"}},
	Claims: redlock.Claims,
	Shared: true,
	Open:   func(e Env) (Lock, error) { return withQuorum(e, (len(e.Sites)+1)/2), nil },
}
