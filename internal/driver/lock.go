package driver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// Worker returns the lock object of a new worker. Every worker has its own number. A worker that replaces a dead
// worker gets a new number.
//
// The suite does not see whether and when the library renews a lease. So it records an extension with an unknown
// outcome for each hold, from the grant to the reply to its release. This record promises nothing to the holder, but
// the servers may keep the lock for another lease.
func (p *Process) Worker(renewals *history.Lane) locks.Lock {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.worker++
	w := &worker{p: p, number: p.worker, held: map[string]*held{}, renewals: renewals}
	if p.spec.Waits {
		return &patient{w}
	}
	return w
}

// patient is a worker whose library waits inside Acquire.
type patient struct{ *worker }

// AcquireWithin implements locks.Patient.
func (w *patient) AcquireWithin(ctx context.Context, key string, ttl, wait time.Duration) (locks.Lease, error) {
	return w.acquire(ctx, request{Key: key, Mode: w.mode(0)}, ttl, wait)
}

// AcquireShareWithin implements locks.PatientSharer.
func (w *patient) AcquireShareWithin(ctx context.Context, key string, ttl time.Duration, permits int,
	wait time.Duration) (locks.Lease, error) {
	return w.share(ctx, key, ttl, permits, wait)
}

type worker struct {
	p      *Process
	number int
	held   map[string]*held // by key

	renewals *history.Lane // nil if the lock does not renew
	renewal  *history.Op   // the extension that is recorded with the current hold
}

// renews starts the record of a possible renewal.
func (w *worker) renews(lease *locks.Lease, ttl time.Duration) {
	if w.renewals == nil {
		return
	}
	if lease.Token == "" {
		lease.Token = rand.Text() // the extension refers to its hold by the token
	}
	w.settle()
	w.renewal = w.renewals.Call(history.Extend, -1)
	w.renewal.Token, w.renewal.TTL, w.renewal.Reason = history.Hash(lease.Token), ttl, history.Other
}

// settle ends the record of a possible renewal.
func (w *worker) settle() {
	if w.renewal != nil {
		w.renewals.Return(w.renewal)
		w.renewal = nil
	}
}

// held is a hold of the worker, which may have entered it several times.
type held struct {
	*hold
	count int64
}

// Acquire implements locks.Lock.
func (w *worker) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return w.acquire(ctx, request{Key: key, Mode: w.mode(0), Permits: w.p.spec.Claims.Permits}, ttl, 0)
}

// AcquireShare implements locks.Sharer.
func (w *worker) AcquireShare(ctx context.Context, key string, ttl time.Duration, permits int) (locks.Lease, error) {
	return w.share(ctx, key, ttl, permits, 0)
}

func (w *worker) share(ctx context.Context, key string, ttl time.Duration, permits int,
	wait time.Duration) (locks.Lease, error) {
	m := request{Key: key, Mode: w.mode(permits)}
	if m.Mode == "" {
		m.Permits = permits
	}
	lease, err := w.acquire(ctx, m, ttl, wait)
	lease.Permits = permits
	return lease, err
}

// mode returns the mode in which a worker acquires a readers-writer lock: writing if permits is 0, otherwise reading.
// It is empty for other locks.
func (w *worker) mode(permits int) string {
	switch {
	case !w.p.spec.Claims.Readers:
		return ""
	case permits > 0:
		return reading
	}
	return writing
}

// Upgrade implements locks.Upgrader.
func (w *worker) Upgrade(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	lease, err := w.prolong(ctx, opUpgrade, lease, ttl)
	if err == nil {
		lease.Permits = 0
	}
	return lease, err
}

// AcquireAll implements locks.Several.
func (w *worker) AcquireAll(ctx context.Context, keys []string, ttl, wait time.Duration) (locks.Lease, error) {
	if !w.p.spec.Waits {
		wait = 0
	}
	return w.acquire(ctx, request{Key: keys[0], Keys: keys}, ttl, wait)
}

// acquire requests one key or several. The worker stores the hold under the first key.
func (w *worker) acquire(ctx context.Context, m request, ttl, wait time.Duration) (locks.Lease, error) {
	key, lease := m.Key, locks.Lease{Key: m.Key, Keys: m.Keys}
	most := wait.Milliseconds()
	m.Op, m.Worker, m.TTL, m.Wait = opAcquire, w.number, ttl.Milliseconds(), &most
	again := w.held[key]
	if again != nil && w.p.spec.Claims.Reentrant && len(m.Keys) == 0 {
		m.Op, m.Hold, m.Wait = opReenter, again.id, nil
	}
	call := time.Now()
	a, c, err := w.p.ask(ctx, m)
	if err != nil {
		return lease, err
	}
	if a.Busy && w.p.spec.Waits {
		w.p.waited(time.Since(call) - wait)
	}
	lease.Token, lease.Fence = a.Token, a.Fence
	if err := w.outcome(ctx, &a); err != nil {
		// the lock may be held, so the worker releases it
		if lease.Token != "" && m.Op == opAcquire && !errors.Is(err, locks.ErrBusy) {
			w.held[key] = &held{hold: &hold{id: c.id, lost: make(chan struct{})}}
		}
		return lease, err
	}
	if m.Op == opAcquire {
		again = &held{hold: c.hold}
		w.held[key] = again
		w.renews(&lease, ttl)
	}
	if w.p.spec.Claims.Reentrant {
		again.count++
		if a.Count > 0 {
			again.count = a.Count
		}
		lease.Count = again.count
	}
	lease.Tried = min(time.Duration(max(a.Tried, 0)*float64(time.Millisecond)), time.Since(call))
	if lease.Until = w.until(call.Add(lease.Tried), ttl, &a); w.p.spec.Claims.Renews {
		lease.Lost = again.lost // with a lock that renews, holders rely on this; with others, on the deadline
	}
	return lease, nil
}

// outcome returns the error that a reply means; nil is OK. If the call was cancelled before an error came, the error
// wraps the reason for that, too.
func (w *worker) outcome(ctx context.Context, a *message) error {
	switch {
	case a.Busy && w.p.spec.Program.Certain:
		return locks.ErrBusy
	case a.Busy:
		return locks.ErrMaybeBusy
	case a.Lost:
		return locks.ErrLost
	case a.Unsupported:
		return errors.ErrUnsupported
	case a.Error != nil && ctx.Err() != nil:
		return fmt.Errorf("%s: %w", *a.Error, ctx.Err())
	case a.Error != nil:
		return errors.New(*a.Error)
	default:
		return nil
	}
}

// until returns the end of a lease. The lease is assumed to begin at the call, the earliest possible time. The result
// is zero if the holder relies on the lock until it releases or loses it. Such a lock never expires, or it renews its
// lease and names no end.
func (w *worker) until(call time.Time, ttl time.Duration, a *message) time.Time {
	claims := &w.p.spec.Claims
	switch {
	case !claims.Expires:
		return time.Time{}
	case a.Valid != nil:
		return call.Add(time.Duration(*a.Valid * float64(time.Millisecond)))
	case claims.Renews:
		return time.Time{}
	default:
		return locks.Until(call, ttl)
	}
}

// Extend implements locks.Lock.
func (w *worker) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	return w.prolong(ctx, opExtend, lease, ttl)
}

// prolong sends a request that gives a hold a new lease from now on.
func (w *worker) prolong(ctx context.Context, op string, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	h, ok := w.held[lease.Key]
	if !ok {
		return lease, locks.ErrLost
	}
	call := time.Now()
	a, _, err := w.p.ask(ctx, request{Op: op, Worker: w.number, Hold: h.id, TTL: ttl.Milliseconds()})
	if err == nil {
		err = w.outcome(ctx, &a)
	}
	if err == nil {
		lease.Until = w.until(call, ttl, &a)
	}
	return lease, err
}

// Release implements locks.Lock.
func (w *worker) Release(ctx context.Context, lease locks.Lease) error {
	h, ok := w.held[lease.Key]
	if !ok {
		return locks.ErrLost
	}
	if h.count--; h.count <= 0 {
		delete(w.held, lease.Key)
		defer w.p.forget(h.id)
		defer w.settle()
	}
	a, _, err := w.p.ask(ctx, request{Op: opRelease, Worker: w.number, Hold: h.id})
	if err != nil {
		return err
	}
	return w.outcome(ctx, &a)
}

// Close implements locks.Lock. It releases nothing.
func (w *worker) Close() error {
	w.settle()
	for _, h := range w.held {
		w.p.forget(h.id)
	}
	return nil
}

func (p *Process) forget(hold uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.holds, hold)
}
