package locks

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var redlock = Spec{
	Name:    "redlock",
	Doc:     "the same token on a majority of independent sites, asked in parallel within a part of the lease",
	Source:  "redis.io, Distributed Locks with Redis: the Redlock algorithm",
	Sites:   ManySites,
	Assumes: "no majority forgets its keys or steps its clock within a lease; the holder is done before Until",
	Claims:  history.Claims{Excludes: true, Expires: true, Owned: true},
	Open:    func(e Env) (Lock, error) { return &redlockLock{sites: e.Sites}, nil },
}

// A site that does not answer costs a try this part of the lease, within bounds.
const (
	siteTimeoutShare = 20
	minSiteTimeout   = 50 * time.Millisecond
	maxSiteTimeout   = 500 * time.Millisecond
)

type redlockLock struct{ sites []redis.UniversalClient }

func (l *redlockLock) quorum() int { return len(l.sites)/2 + 1 }

func (l *redlockLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease := Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	v := l.poll(ctx, ttl, func(ctx context.Context, c redis.UniversalClient) error {
		return setNX(ctx, c, key, lease.Token, ttl)
	})
	lease.Until = until(call, ttl)
	if v.ok >= l.quorum() && time.Now().Before(lease.Until) {
		return lease, nil
	}
	lease.Until = time.Time{}
	// What a minority granted would stand in everybody's way until it expires.
	undone := l.release(ctx, lease, ttl)
	if v.ok+v.unknown < l.quorum() || v.unknown+undone.unknown < l.quorum() {
		return lease, fmt.Errorf("%d of %d sites granted: %w", v.ok, len(l.sites), ErrQuorum)
	}
	return lease, fmt.Errorf("acquire: %w", errors.Join(append(v.errs, undone.errs...)...))
}

func (l *redlockLock) Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	call := time.Now()
	v := l.poll(ctx, ttl, func(ctx context.Context, c redis.UniversalClient) error {
		return extendOwned(ctx, c, lease.Key, lease.Token, ttl)
	})
	end := until(call, ttl)
	if v.ok >= l.quorum() && time.Now().Before(end) {
		lease.Until = end
		return lease, nil
	}
	return lease, l.decide(v, "extend")
}

func (l *redlockLock) Release(ctx context.Context, lease Lease) error {
	return l.decide(l.release(ctx, lease, maxSiteTimeout*siteTimeoutShare), "release")
}

// release asks every site, in a context of its own: a lock must be given back also when its user was called off.
func (l *redlockLock) release(ctx context.Context, lease Lease, ttl time.Duration) votes {
	return l.poll(context.WithoutCancel(ctx), ttl, func(ctx context.Context, c redis.UniversalClient) error {
		return deleteOwned(ctx, c, lease.Key, lease.Token)
	})
}

func (l *redlockLock) Close() error { return nil }

// votes are the outcomes of one question to all sites.
type votes struct {
	ok, failed, unknown int
	errs                []error
}

// decide says what the majority makes of a call on a held lock.
func (l *redlockLock) decide(v votes, what string) error {
	switch {
	case v.ok >= l.quorum():
		return nil
	case v.ok+v.unknown < l.quorum():
		return ErrLost
	default:
		return fmt.Errorf("%s: %w", what, errors.Join(v.errs...))
	}
}

// poll asks all sites at once and waits for all answers, each no longer than its share of the lease.
func (l *redlockLock) poll(ctx context.Context, ttl time.Duration,
	ask func(context.Context, redis.UniversalClient) error) votes {
	ctx, cancel := context.WithTimeout(ctx, min(max(ttl/siteTimeoutShare, minSiteTimeout), maxSiteTimeout))
	defer cancel()
	errs := make([]error, len(l.sites))
	var wg sync.WaitGroup
	for i, c := range l.sites {
		wg.Go(func() { errs[i] = ask(ctx, c) })
	}
	wg.Wait()
	var v votes
	for _, err := range errs {
		switch outcome, _ := Classify(err); outcome {
		case history.OK:
			v.ok++
		case history.Failed:
			v.failed++
		default:
			v.unknown++
			v.errs = append(v.errs, err)
		}
	}
	return v
}
