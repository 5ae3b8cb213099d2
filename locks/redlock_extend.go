package locks

var redlockExtend = Spec{
	Name:    "redlock-extend",
	Doc:     "redlock with a watchdog: a majority extends at a third of the lease",
	Source:  "redis.io, Distributed Locks with Redis: making the algorithm more reliable, extending the lock",
	Sites:   ManySites,
	Assumes: keepsQuorum + heedsLost,
	Claims:  watchdog.Claims,
	Shared:  true,
	Open:    func(e Env) (Lock, error) { return renew(newRedlock(e), e), nil },
}
