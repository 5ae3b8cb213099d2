package catalogue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var redlock = locks.Spec{
	Name:    "redlock",
	Doc:     "the same token on a majority of independent sites, asked in parallel within a part of the lease",
	Source:  "redis.io, Distributed Locks with Redis: the Redlock algorithm",
	Sites:   locks.ManySites,
	Assumes: keepsQuorum + doneInTime,
	Expect: []locks.Expectation{
		{Cause: history.ServiceLoss, Fault: "restart-empty"},
		{Cause: history.Overrun, Fault: "stall-worker"},
	},
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true},
	Shared: true,
	Open:   func(e locks.Env) (locks.Lock, error) { return newRedlock(e), nil },
}

// A try waits for the reply of each site for at most a twentieth of the lease. This limit is at least 50 ms and at
// most 500 ms.
const (
	siteTimeoutShare = 20
	minSiteTimeout   = 50 * time.Millisecond
	maxSiteTimeout   = 500 * time.Millisecond
)

type redlockLock struct {
	sites   []redis.UniversalClient
	quorum  int
	patient bool           // requests wait as long as the client's timeout allows
	each    func([]func()) // runs the requests to the sites
	site    siteLock
}

// siteLock has the requests to one site: take acquires a lease, keep extends it and give releases it.
type siteLock struct {
	take, keep func(ctx context.Context, c redis.UniversalClient, lease locks.Lease, ttl time.Duration) error
	give       func(ctx context.Context, c redis.UniversalClient, lease locks.Lease) error
}

// oneKey has the requests of a lock with one key on each site.
var oneKey = siteLock{
	take: func(ctx context.Context, c redis.UniversalClient, lease locks.Lease, ttl time.Duration) error {
		return setNX(ctx, c, lease.Key, lease.Token, ttl)
	},
	keep: func(ctx context.Context, c redis.UniversalClient, lease locks.Lease, ttl time.Duration) error {
		return extendOwned(ctx, c, lease.Key, lease.Token, ttl)
	},
	give: func(ctx context.Context, c redis.UniversalClient, lease locks.Lease) error {
		return deleteOwned(ctx, c, lease.Key, lease.Token)
	},
}

func newRedlock(e locks.Env) *redlockLock {
	return &redlockLock{sites: e.Sites, quorum: len(e.Sites)/2 + 1, each: atOnce, site: oneKey}
}

func (l *redlockLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return l.acquire(ctx, locks.Lease{Key: key, Token: rand.Text()}, ttl)
}

func (l *redlockLock) acquire(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	v := l.grant(ctx, lease, ttl)
	lease.Until = locks.Until(call, ttl)
	if v.ok >= l.quorum && time.Now().Before(lease.Until) {
		return lease, nil
	}
	lease.Until = time.Time{}
	return lease, l.giveUp(ctx, lease, ttl, v)
}

// giveUp releases the keys of a try without a quorum. Otherwise they would block other workers until they expire.
func (l *redlockLock) giveUp(ctx context.Context, lease locks.Lease, ttl time.Duration, v votes) error {
	undone := l.release(ctx, lease, ttl)
	if v.ok+v.unknown < l.quorum || v.unknown+undone.unknown < l.quorum {
		return l.noQuorum(v)
	}
	return fmt.Errorf("acquire: %w", errors.Join(append(v.errs, undone.errs...)...))
}

// noQuorum returns the error of a try that has certainly failed. If a quorum was granted too late, its sites count
// as Silent.
func (l *redlockLock) noQuorum(v votes) error {
	e := locks.NoQuorum{Granted: v.ok, Sites: len(l.sites), Silent: len(l.sites) - v.ok - v.busy}
	if v.ok >= l.quorum {
		e.Silent += v.ok
	}
	return e
}

func (l *redlockLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	v := l.poll(ctx, ttl, func(ctx context.Context, c redis.UniversalClient) error {
		return l.site.keep(ctx, c, lease, ttl)
	})
	end := locks.Until(call, ttl)
	if v.ok >= l.quorum && time.Now().Before(end) {
		lease.Until = end
		return lease, nil
	}
	return lease, l.decide(v, "extend")
}

func (l *redlockLock) Release(ctx context.Context, lease locks.Lease) error {
	return l.decide(l.release(ctx, lease, maxSiteTimeout*siteTimeoutShare), "release")
}

func (l *redlockLock) grant(ctx context.Context, lease locks.Lease, ttl time.Duration) votes {
	return l.poll(ctx, ttl, func(ctx context.Context, c redis.UniversalClient) error {
		return l.site.take(ctx, c, lease, ttl)
	})
}

// release sends a release to every site, even if ctx is cancelled.
func (l *redlockLock) release(ctx context.Context, lease locks.Lease, ttl time.Duration) votes {
	return l.poll(context.WithoutCancel(ctx), ttl, func(ctx context.Context, c redis.UniversalClient) error {
		return l.site.give(ctx, c, lease)
	})
}

func (l *redlockLock) Close() error { return nil }

// votes counts the replies of the sites to one request, by kind.
type votes struct {
	ok, unknown int
	lost        int // failures because the site no longer has the key
	busy        int // failures because another worker holds the lock on this site
	errs        []error
	refusals    []error
}

// decide returns the result of an extension or a release, by majority. The hold is lost if the sites that may still
// have the key are no quorum. A site without a reply may have it.
func (l *redlockLock) decide(v votes, what string) error {
	switch {
	case v.ok >= l.quorum:
		return nil
	case len(l.sites)-v.lost < l.quorum:
		return locks.ErrLost
	case v.unknown > 0:
		return fmt.Errorf("%s: %w", what, errors.Join(v.errs...))
	case v.ok+v.lost > 0:
		// The outcome is unknown, so this error must not wrap the refusals: Classify would find them and return
		// Failed.
		return fmt.Errorf("%s: %d of %d sites did it: %v", what, v.ok, len(l.sites), errors.Join(v.refusals...))
	default:
		return fmt.Errorf("%s: %w", what, errors.Join(v.refusals...))
	}
}

// poll sends a request to all sites and counts the replies. It waits for each site as long as share allows.
func (l *redlockLock) poll(ctx context.Context, ttl time.Duration,
	ask func(context.Context, redis.UniversalClient) error) votes {
	errs := make([]error, len(l.sites))
	questions := make([]func(), len(l.sites))
	for i, c := range l.sites {
		questions[i] = func() {
			ctx, cancel := l.share(ctx, ttl)
			defer cancel()
			errs[i] = ask(ctx, c)
		}
	}
	l.each(questions)
	return count(errs)
}

// share returns the context for a request to one site, which limits the wait for its reply.
func (l *redlockLock) share(ctx context.Context, ttl time.Duration) (context.Context, context.CancelFunc) {
	if l.patient {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, siteTimeout(ttl))
}

// siteTimeout is the longest wait for the reply of one site.
func siteTimeout(ttl time.Duration) time.Duration {
	return min(max(ttl/siteTimeoutShare, minSiteTimeout), maxSiteTimeout)
}

func atOnce(questions []func()) {
	var wg sync.WaitGroup
	for _, ask := range questions {
		wg.Go(ask)
	}
	wg.Wait()
}

func inTurn(questions []func()) {
	for _, ask := range questions {
		ask()
	}
}

func count(errs []error) votes {
	var v votes
	for _, err := range errs {
		switch outcome, _ := locks.Classify(err); outcome {
		case history.OK:
			v.ok++
		case history.Failed:
			v.refusals = append(v.refusals, err)
			switch {
			case errors.Is(err, locks.ErrLost):
				v.lost++
			case errors.Is(err, locks.ErrBusy):
				v.busy++
			}
		default:
			v.unknown++
			v.errs = append(v.errs, err)
		}
	}
	return v
}
