package catalogue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var libRedsync = locks.Spec{
	Name: "redsync",
	Doc: "go-redsync/redsync with its defaults, believed in until its Until(); " +
		"waits as long between two tries as the library",
	Source:  "github.com/go-redsync/redsync/v4 v4.18.1",
	Library: true,
	Sites:   locks.ManySites,
	Assumes: keepsQuorum + doneInTime,
	Claims:  history.Claims{Excludes: true, Expires: true, Owned: true},
	Open:    func(e locks.Env) (locks.Lock, error) { return newRedsync(e), nil },
}

func newRedsync(e locks.Env, o ...redsync.Option) *redsyncLock {
	l := &redsyncLock{held: map[string]*redsync.Mutex{}, sites: len(e.Sites), rand: e.Rand, options: o}
	var pools []redis.Pool
	for _, c := range e.Sites {
		pools = append(pools, goredis.NewPool(c))
	}
	l.redsync = redsync.New(pools...)
	return l
}

type redsyncLock struct {
	redsync *redsync.Redsync
	options []redsync.Option
	held    map[string]*redsync.Mutex // by token
	sites   int
	rand    *rand.Rand
}

func (l *redsyncLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key}
	m := l.redsync.NewMutex(key, append([]redsync.Option{redsync.WithExpiry(ttl)}, l.options...)...)
	if err := m.TryLockContext(ctx); err != nil {
		return lease, l.classify(err, locks.ErrBusy)
	}
	lease.Token, lease.Until = m.Value(), m.Until()
	l.held[lease.Token] = m
	return lease, nil
}

// Extend sets ttl as the expiry of the mutex first, because ExtendContext takes no TTL.
func (l *redsyncLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	m, ok := l.held[lease.Token]
	if !ok {
		return lease, locks.ErrLost
	}
	redsync.WithExpiry(ttl).Apply(m)
	done, err := m.ExtendContext(ctx)
	if done {
		lease.Until = m.Until()
		return lease, nil
	}
	return lease, l.classify(err, locks.ErrLost)
}

func (l *redsyncLock) Release(ctx context.Context, lease locks.Lease) error {
	m, ok := l.held[lease.Token]
	if !ok {
		return locks.ErrLost
	}
	delete(l.held, lease.Token)
	done, err := m.UnlockContext(ctx)
	if done {
		return nil
	}
	return l.classify(err, locks.ErrLost)
}

// Wait pauses for 50 to 250 ms, as the library's method Lock does between two tries.
func (l *redsyncLock) Wait(ctx context.Context, _ string) (history.Wake, error) {
	const least, most = 50, 250
	return history.Poll, pause(ctx, time.Duration(least+l.rand.IntN(most-least))*time.Millisecond)
}

func (l *redsyncLock) Close() error { return nil }

// classify adds to an error of the library what it proves. If a majority of the sites refused, the result wraps the
// error no, which is ErrBusy or ErrLost. If the sites that refused an Acquire or could not be reached are a majority
// together, the Acquire has failed too. In all other cases the outcome is unknown.
func (l *redsyncLock) classify(err, no error) error {
	if _, ok := errors.AsType[*redsync.ErrTaken](err); ok {
		return fmt.Errorf("%w: %w", no, err)
	}
	said, failed := 0, 0
	for _, e := range split(err) {
		_, taken := errors.AsType[*redsync.ErrNodeTaken](e)
		outcome, _ := locks.Classify(e)
		switch {
		case taken || errors.Is(e, redsync.ErrLockAlreadyExpired):
			said++
		case outcome == history.Failed && !errors.Is(no, locks.ErrLost):
			failed++
		}
	}
	majority := l.sites - l.sites/2
	switch {
	case said >= majority:
		return fmt.Errorf("%d of %d sites: %w", said, l.sites, no)
	case failed >= majority: // these sites failed without an effect; they need not have refused
		return err
	case said+failed >= majority:
		return fmt.Errorf("%d of %d sites did not grant: %w", said+failed, l.sites, locks.ErrQuorum)
	}
	return fmt.Errorf("%d of %d sites said no: %w", said, l.sites, locks.AfterGrant(err))
}

// split returns the parts of a joined error, or just err.
func split(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, split(e)...)
	}
	return all
}
