package catalogue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

var halfQuorum = locks.Spec{
	Name:   "half-quorum",
	Doc:    "redlock that takes half of the sites, rounded down, for a majority",
	Source: "n/2 where n/2+1 was meant",
	Sites:  locks.ManySites,
	Broken: "two of five sites are enough, and there are two disjoint pairs",
	Expect: []locks.Expectation{{Cause: history.DoubleGrant}},
	Claims: redlock.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return withQuorum(e, max(len(e.Sites)/2, 1)), nil },
}

// withQuorum makes a redlock for which the given number of sites is a quorum.
func withQuorum(e locks.Env, sites int) *redlockLock {
	l := newRedlock(e)
	l.quorum = sites
	return l
}

var floatQuorum = locks.Spec{
	Name:   "float-quorum",
	Doc:    "redlock with a quorum of n/2+1, in a language in which 5/2 is 2.5",
	Source: "redlock-php pull requests 6 and 16",
	Sites:  locks.ManySites,
	Broken: "3.5 of 5 sites are 4, and 2.5 of 3 are all: no worker gets the lock while a minority is down " +
		"that it claims to survive",
	Expect: []locks.Expectation{{Cause: history.Stuck, Scenario: "minority-hung"}, {Cause: history.Deadlock}},
	Claims: redlock.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return withQuorum(e, min(len(e.Sites), (len(e.Sites)+1)/2+1)), nil
	},
}

var roundedQuorum = locks.Spec{
	Name:   "rounded-quorum",
	Doc:    "redlock that takes half of the sites, rounded up, for a majority",
	Source: "redis.io, Distributed Locks with Redis: N/2+1, with an N that its examples never let be even",
	Sites:  locks.ManySites,
	Broken: "that is a majority of three or five sites; of four, two are enough, and there are two disjoint pairs",
	Expect: []locks.Expectation{{Cause: history.DoubleGrant, Scenario: "four-sites"}},
	Claims: redlock.Claims,
	Shared: true,
	Open:   func(e locks.Env) (locks.Lock, error) { return withQuorum(e, (len(e.Sites)+1)/2), nil },
}

var fixedQuorum = locks.Spec{
	Name:   "fixed-quorum",
	Doc:    "redlock that wants three sites, however many there are",
	Source: "redis.io, Distributed Locks with Redis: the majority of its five instances, at least 3",
	Sites:  locks.ManySites,
	Broken: "three of three are all: no worker gets the lock while one is down that it claims to survive",
	Expect: []locks.Expectation{{Cause: history.Stuck, Scenario: "three-sites"},
		{Cause: history.Deadlock, Scenario: "three-sites"}},
	Claims: redlock.Claims,
	Shared: true,
	Open:   func(e locks.Env) (locks.Lock, error) { return withQuorum(e, min(3, len(e.Sites))), nil },
}

var reachedQuorum = locks.Spec{
	Name:   "reached-quorum",
	Doc:    "redlock with a majority of the sites that it reaches, so that some may be down",
	Source: "redlock-py pull request 6, a quorum of its connection_list",
	Sites:  locks.ManySites,
	Broken: "a majority of those that one client reaches need not meet that of another: " +
		"one site is enough when it is alone",
	Expect: []locks.Expectation{{Cause: history.DoubleGrant}},
	Claims: redlock.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return &reachedLock{newRedlock(e)}, nil },
}

type reachedLock struct{ *redlockLock }

func (l *reachedLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	v := l.grant(ctx, lease, ttl)
	reached := v.ok + v.busy
	end := locks.Until(call, ttl)
	if v.ok >= reached/2+1 && time.Now().Before(end) {
		lease.Until = end
		return lease, nil
	}
	return lease, l.giveUp(ctx, lease, ttl, v)
}

var noElapsed = locks.Spec{
	Name:   "no-elapsed",
	Doc:    "redlock that does not take off the time that the acquisition took",
	Source: "redlocks without step 3 of the algorithm",
	Sites:  locks.ManySites,
	Broken: "the first sites' leases run while the last ones are asked: slow grants are over before " +
		"they are believed to be",
	// No scenario is listed, because "delay" shows this cause on a busy machine only: 22 runs on an idle one did
	// not.
	Expect: []locks.Expectation{{Cause: history.OverClaim}},
	Claims: redlock.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return &noElapsedLock{newRedlock(e)}, nil },
}

type noElapsedLock struct{ *redlockLock }

func (l *noElapsedLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: rand.Text()}
	v := l.grant(ctx, lease, ttl)
	if v.ok < l.quorum {
		return lease, l.giveUp(ctx, lease, ttl, v)
	}
	lease.Until = locks.Until(time.Now(), ttl)
	return lease, nil
}

var keepsMinority = locks.Spec{
	Name:   "keeps-minority",
	Doc:    "redlock whose failed tries leave their keys on the sites that granted",
	Source: "redlocks that release only what they hold",
	Sites:  locks.ManySites,
	Broken: "when tries collide no worker has a majority, and none can get one until the leases end",
	Expect: []locks.Expectation{{Cause: history.Leftover}, {Cause: history.Stuck}},
	Claims: redlock.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return &keepsMinorityLock{newRedlock(e)}, nil },
}

type keepsMinorityLock struct{ *redlockLock }

func (l *keepsMinorityLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	v := l.grant(ctx, lease, ttl)
	end := locks.Until(call, ttl)
	switch {
	case v.ok+v.unknown < l.quorum:
		return lease, l.noQuorum(v)
	case v.ok < l.quorum || !time.Now().Before(end):
		return lease, fmt.Errorf("%d of %d sites granted in time: %w", v.ok, len(l.sites), errors.Join(v.errs...))
	}
	lease.Until = end
	return lease, nil
}

var waitAll = locks.Spec{
	Name:   "wait-all",
	Doc:    "redlock that waits for every site as long as the client library does",
	Source: "redlocks without a timeout for each site",
	Sites:  locks.ManySites,
	Broken: "one hung site eats up the lease: with leases under the client's timeout no worker gets the lock any more",
	Expect: []locks.Expectation{{Cause: history.Stuck, Scenario: "minority-hung"}, {Cause: history.Deadlock}},
	Claims: redlock.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		l := newRedlock(e)
		l.patient = true
		return l, nil
	},
}

var silentRelease = locks.Spec{
	Name:   "silent-release",
	Doc:    "redlock whose release asks all sites and leaves what does not work to the expiry",
	Source: "redlock (Node) issue 11, unlock before 2.0; redlock-py pull request 5",
	Sites:  locks.ManySites,
	Broken: "it answers that it has released whatever the sites say: a late holder never hears that " +
		"the lock was another's",
	Expect: []locks.Expectation{{Cause: history.FalseRelease}},
	Claims: redlock.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return &silentLock{newRedlock(e)}, nil },
}

type silentLock struct{ *redlockLock }

func (l *silentLock) Release(ctx context.Context, lease locks.Lease) error {
	l.release(ctx, lease, maxSiteTimeout*siteTimeoutShare)
	return nil
}
