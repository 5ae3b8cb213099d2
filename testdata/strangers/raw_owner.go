package catalogue

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// laravel/framework issue 36337: the client serializes values, but not the arguments of scripts. What the release
// compares is not what was stored.
var rawOwner = locks.Spec{
	Name: "raw-owner", Doc: "lease whose owner is stored in serialized form and compared in plain",
	Source: "laravel/framework issue 36337",
	Sites:  locks.OneSite, Broken: "no release takes effect: every lock stays until its lease is over",
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true}, Shared: true,
	Open: func(e locks.Env) (locks.Lock, error) { return &rawOwnerLock{leaseLock{e.Sites[0]}}, nil },
}

type rawOwnerLock struct{ leaseLock }

func (l *rawOwnerLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	err := setNX(ctx, l.client, key, fmt.Sprintf("s:%d:%q;", len(lease.Token), lease.Token), ttl)
	return from(lease, call, ttl, err)
}
