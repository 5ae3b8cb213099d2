package catalogue

import "hammerlock/locks"

var redlockSerial = locks.Spec{
	Name:    "redlock-serial",
	Doc:     "redlock that asks its sites one after another",
	Source:  "redis.io, Distributed Locks with Redis: the Redlock algorithm, step 2 as it is written",
	Sites:   locks.ManySites,
	Assumes: keepsQuorum + doneInTime,
	Claims:  redlock.Claims,
	Shared:  true,
	Open: func(e locks.Env) (locks.Lock, error) {
		l := newRedlock(e)
		l.each = inTurn
		return l, nil
	},
}
