package locks

import (
	"context"

	"hammerlock/history"
)

var silentRelease = Spec{
	Name:   "silent-release",
	Doc:    "redlock whose release asks all sites and leaves what does not work to the expiry",
	Source: "redlock (Node) issue 11, unlock before 2.0; redlock-py pull request 5",
	Sites:  ManySites,
	Broken: "it answers that it has released whatever the sites say: a late holder never hears that the lock was another's",
	Expect: []Expectation{{Cause: history.FalseRelease}},
	Claims: redlock.Claims,
	Open:   func(e Env) (Lock, error) { return &silentLock{newRedlock(e)}, nil },
}

type silentLock struct{ *redlockLock }

func (l *silentLock) Release(ctx context.Context, lease Lease) error {
	l.release(ctx, lease, maxSiteTimeout*siteTimeoutShare)
	return nil
}
