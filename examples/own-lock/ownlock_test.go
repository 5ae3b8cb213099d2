package ownlock

import (
	"context"
	"testing"
	"time"

	"hammerlock/explore"
	"hammerlock/hammertest"
	"hammerlock/history"
	"hammerlock/locks"
)

// TestMain is what hammertest needs to start processes of its own.
func TestMain(m *testing.M) { hammertest.Main(m) }

// config says what the lock promises, and so what it is judged by.
var config = hammertest.Config{Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true}}

// TestVerify puts the lock through all scenarios on a real server, about a minute and a half.
func TestVerify(t *testing.T) { hammertest.Verify(t, open, config) }

// TestExplore tries every order of the messages of two clients, without a server.
func TestExplore(t *testing.T) {
	c := config
	c.Options = bounds(1)
	hammertest.Explore(t, open, c)
}

// bounds are the default ones with so many deviations.
func bounds(deviations int) *explore.Options {
	o := explore.Defaults
	o.Deviations = deviations
	return &o
}

// worker is one worker's access to the lock, as hammertest asks for it: it says by its errors what is certain.
type worker struct {
	env  locks.Env
	held map[string]*Mutex // by token
}

func open(e locks.Env) (locks.Lock, error) { return newWorker(e), nil }

func newWorker(e locks.Env) *worker { return &worker{env: e, held: map[string]*Mutex{}} }

func (w *worker) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	m := &Mutex{Client: w.env.Sites[0], Key: key}
	granted, err := m.TryLock(ctx, ttl)
	lease := locks.Lease{Key: key, Token: m.token, Until: m.Until()}
	if err == nil && !granted {
		return lease, locks.ErrBusy
	}
	w.held[m.token] = m // after an error, too: it may have come about
	return lease, err
}

func (w *worker) Extend(ctx context.Context, l locks.Lease, ttl time.Duration) (locks.Lease, error) {
	m, ok := w.held[l.Token]
	if !ok {
		return l, locks.ErrLost
	}
	ours, err := m.Extend(ctx, ttl)
	if err == nil && !ours {
		return l, locks.ErrLost
	}
	l.Until = m.Until()
	return l, err
}

func (w *worker) Release(ctx context.Context, l locks.Lease) error {
	m, ok := w.held[l.Token]
	if !ok {
		return locks.ErrLost
	}
	delete(w.held, l.Token)
	ours, err := m.Unlock(ctx)
	if err == nil && !ours {
		return locks.ErrLost
	}
	return err
}

func (w *worker) Close() error { return nil }
