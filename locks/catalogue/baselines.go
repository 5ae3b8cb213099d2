package catalogue

import "hammerlock/locks"

var incr = locks.Spec{
	Name:     "incr",
	Doc:      "no lock: the counter adds one itself, as INCR does, in a script that also says whom it replaced",
	Source:   "redis.io, INCR: what a page-view counter needs, and no lock",
	Sites:    locks.NoSite,
	Assumes:  "what is guarded can do the whole update in one step",
	Counting: locks.OneStep,
	Open:     none.Open,
}

var optimistic = locks.Spec{
	Name:     "optimistic",
	Doc:      "no lock: WATCH, read, MULTI, SET, EXEC, and all of it again if another client wrote in between",
	Source:   "redis.io, Transactions: optimistic locking using check-and-set",
	Sites:    locks.NoSite,
	Assumes:  "what is guarded can compare and write in one step",
	Counting: locks.Optimistic,
	Open:     none.Open,
}
