package ownlock

import (
	"context"
	"errors"
	"testing"
	"time"

	"hammerlock/hammertest"
	"hammerlock/history"
	"hammerlock/locks"
)

// renewing extends its holds in the background, as a watchdog does. The suite learns of each extension by Env.Renewals.
type renewing struct {
	*worker
	stops map[string]func() // by token
}

func openRenewing(e locks.Env) (locks.Lock, error) {
	return &renewing{worker: newWorker(e), stops: map[string]func(){}}, nil
}

func (r *renewing) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := r.worker.Acquire(ctx, key, ttl)
	if err != nil {
		return lease, err
	}
	lost, done := make(chan struct{}), make(chan struct{})
	lease.Lost = lost // lease.Until is the end of the first lease
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	m := r.held[lease.Token]
	go func() {
		defer close(done)
		r.renew(ctx, m, ttl, lost)
	}()
	r.stops[lease.Token] = func() { stop(); <-done }
	return lease, nil
}

// renew extends a hold after a third of its lease. If an extension fails, it tries again a tenth of the lease later.
// It closes lost when the holder can no longer rely on the lock.
func (r *renewing) renew(ctx context.Context, m *Mutex, ttl time.Duration, lost chan<- struct{}) {
	for {
		left := time.Until(m.Until())
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(left-ttl*2/3, min(left, ttl/10))):
		}
		err := context.DeadlineExceeded
		if time.Now().Before(m.Until()) {
			err = r.once(ctx, m, ttl)
		}
		if ended := !time.Now().Before(m.Until()); ctx.Err() == nil && (ended || errors.Is(err, locks.ErrLost)) {
			close(lost)
			return
		}
	}
}

// once makes one extension and records it: its token, its lease, its outcome, and the new end if there is one.
func (r *renewing) once(ctx context.Context, m *Mutex, ttl time.Duration) error {
	ctx, cancel := context.WithDeadline(ctx, m.Until())
	defer cancel()
	op := r.env.Renewals.Call(history.Extend, -1) // -1: the token names the hold, so that no page is needed
	ours, err := m.Extend(ctx, ttl)
	if err == nil && !ours {
		err = locks.ErrLost
	}
	op.Token, op.TTL = history.Hash(m.token), ttl
	if op.Outcome, op.Reason = locks.Classify(err); err == nil {
		op.Until = r.env.Renewals.Clock().At(m.Until())
	}
	r.env.Renewals.Return(op)
	return err
}

// Release stops the renewals first, so that none follows the release.
func (r *renewing) Release(ctx context.Context, l locks.Lease) error {
	r.stop(l.Token)
	return r.worker.Release(ctx, l)
}

func (r *renewing) stop(token string) {
	if stop := r.stops[token]; stop != nil {
		stop()
		delete(r.stops, token)
	}
}

func (r *renewing) Close() error {
	for token := range r.stops {
		r.stop(token)
	}
	return nil
}

// TestRenewing: a lock that renews claims Renews.
func TestRenewing(t *testing.T) {
	c := config
	c.Claims.Renews, c.Options = true, bounds(1)
	hammertest.Explore(t, openRenewing, c)
}
