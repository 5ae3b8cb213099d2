package catalogue

import "hammerlock/locks"

var redlockExtend = locks.Spec{
	Name:    "redlock-extend",
	Doc:     "redlock with a watchdog: a majority extends at a third of the lease",
	Source:  "redis.io, Distributed Locks with Redis: making the algorithm more reliable, extending the lock",
	Sites:   locks.ManySites,
	Assumes: keepsQuorum + heedsLost,
	Claims:  watchdog.Claims,
	Shared:  true,
	Open:    func(e locks.Env) (locks.Lock, error) { return renew(newRedlock(e), e), nil },
}
