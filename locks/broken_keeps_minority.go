package locks

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"hammerlock/history"
)

var keepsMinority = Spec{
	Name:   "keeps-minority",
	Doc:    "redlock whose failed tries leave their keys on the sites that granted",
	Source: "redlocks that release only what they hold",
	Sites:  ManySites,
	Broken: "when tries collide no worker has a majority, and none can get one until the leases end",
	Expect: []Expectation{{Cause: history.Leftover}, {Cause: history.Stuck}},
	Claims: redlock.Claims,
	Open:   func(e Env) (Lock, error) { return &keepsMinorityLock{newRedlock(e)}, nil },
}

type keepsMinorityLock struct{ *redlockLock }

func (l *keepsMinorityLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease := Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	v := l.grant(ctx, lease, ttl)
	end := until(call, ttl)
	switch {
	case v.ok+v.unknown < l.quorum:
		return lease, fmt.Errorf("%d of %d sites granted: %w", v.ok, len(l.sites), ErrQuorum)
	case v.ok < l.quorum || !time.Now().Before(end):
		return lease, fmt.Errorf("%d of %d sites granted in time: %w", v.ok, len(l.sites), errors.Join(v.errs...))
	}
	lease.Until = end
	return lease, nil
}
