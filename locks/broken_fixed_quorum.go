package locks

import "hammerlock/history"

var fixedQuorum = Spec{
	Name:   "fixed-quorum",
	Doc:    "redlock that wants three sites, however many there are",
	Source: "redis.io, Distributed Locks with Redis: the majority of its five instances, at least 3",
	Sites:  ManySites,
	Broken: "three of three are all: no worker gets the lock while one is down that it claims to survive",
	Expect: []Expectation{{Cause: history.Stuck, Scenario: "three-sites"}, {Cause: history.Deadlock, Scenario: "three-sites"}},
	Claims: redlock.Claims,
	Shared: true,
	Open:   func(e Env) (Lock, error) { return withQuorum(e, min(3, len(e.Sites))), nil },
}
