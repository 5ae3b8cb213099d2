package locks

import "hammerlock/history"

var floatQuorum = Spec{
	Name:   "float-quorum",
	Doc:    "redlock with a quorum of n/2+1, in a language in which 5/2 is 2.5",
	Source: "redlock-php pull requests 6 and 16",
	Sites:  ManySites,
	Broken: "3.5 of 5 sites are 4, and 2.5 of 3 are all: no worker gets the lock while a minority is down that it claims to survive",
	Expect: []Expectation{{Cause: history.Stuck, Scenario: "minority-hung"}, {Cause: history.Deadlock}},
	Claims: redlock.Claims,
	Open:   func(e Env) (Lock, error) { return withQuorum(e, min(len(e.Sites), (len(e.Sites)+1)/2+1)), nil },
}
