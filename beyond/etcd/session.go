package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"hammerlock/history"
)

// session is one worker's: two mutexes on one session both hold the lock.
type session struct {
	*concurrency.Session
	renewals *renewals

	client *client
	ttl    time.Duration // that was asked for
	end    context.CancelFunc
}

// open makes a session. A lease of etcd lasts whole seconds, and the server may grant more than it was asked for.
//
// The library looks twice a second whether a lease is to be renewed: of the shortest one, a single late answer is the end. A
// strict session is renewed at a third of its lease.
func (c *client) open(ctx context.Context, ttl time.Duration, strict bool, lane *history.Lane) (*session, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	s := &session{client: c, ttl: ttl, end: end}
	call := time.Now()
	granted, err := c.Grant(ctx, int64((ttl+time.Second-1)/time.Second))
	if err != nil {
		end()
		return nil, err
	}
	s.renewals = &renewals{lane: lane, proof: call, ttl: time.Duration(granted.TTL) * time.Second}
	c.watch(int64(granted.ID), s.renewals)
	// What the library undoes it undoes in the context of its client: this one ends with the session.
	own := clientv3.NewCtxClient(life)
	own.KV, own.Lease, own.Watcher = c.KV, c.Lease, c.Watcher
	if strict {
		own.Lease = punctual{c.Lease, s.renewals.ttl / 3}
	}
	if s.Session, err = concurrency.NewSession(own, concurrency.WithLease(granted.ID), concurrency.WithContext(life)); err != nil {
		end()
		c.watch(int64(granted.ID), nil)
	}
	return s, err
}

// punctual renews a lease as often as it says.
type punctual struct {
	clientv3.Lease
	every time.Duration
}

// KeepAlive renews until ctx is done or the server knows no such lease.
func (p punctual) KeepAlive(ctx context.Context, id clientv3.LeaseID) (<-chan *clientv3.LeaseKeepAliveResponse, error) {
	answers := make(chan *clientv3.LeaseKeepAliveResponse)
	go func() {
		defer close(answers)
		ticker := time.NewTicker(p.every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			once, cancel := context.WithTimeout(ctx, callTimeout)
			_, err := p.KeepAliveOnce(once, id)
			cancel()
			if errors.Is(err, rpctypes.ErrLeaseNotFound) {
				return
			}
		}
	}()
	return answers, nil
}

// orphan leaves the lease to its end, as the death of a process does.
func (s *session) orphan() {
	s.client.watch(int64(s.Lease()), nil)
	s.Orphan()
	s.end()
}

var errInDoubt = errors.New("etcd: what may have been granted ends with its lease")

// revoke ends the lease, and all that may have been taken with it. Whether there was anything it does not tell.
func (s *session) revoke(ctx context.Context) error {
	s.orphan()
	_, err := s.client.Revoke(ctx, s.Lease())
	return errors.Join(errInDoubt, err)
}

// left is for how long the lease is sure to last.
func (s *session) left() time.Duration {
	s.renewals.mu.Lock()
	defer s.renewals.mu.Unlock()
	return time.Until(s.renewals.end())
}

func (s *session) over() bool { return s.Ctx().Err() != nil }

// renewals are what is known of a session's lease: the last call that the server has answered, and for how long.
type renewals struct {
	lane *history.Lane // may be nil

	mu    sync.Mutex
	proof time.Time
	ttl   time.Duration
	hold  *hold // that stands on it; nil = none
}

// hold is one grant.
type hold struct {
	token string
	lost  chan struct{}
	until time.Time // what is recorded of its lease is over then
	once  sync.Once
	timer *time.Timer // ends it when the last proof does; nil = it is believed in for longer
	stop  func() bool // listening to the end of the session
}

func (h *hold) lose() { h.once.Do(func() { close(h.lost) }) }

// end is when the lease may be over by the server's clock, which may go faster than ours.
func (r *renewals) end() time.Time { return r.proof.Add(r.ttl - r.ttl/100 - 2*time.Millisecond) }

// renewed takes down a renewal that was answered. What is recorded was called when it is: its lease is shorter by as much.
func (r *renewals) renewed(call time.Time, ttl time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.proof, r.ttl = call, ttl
	if r.hold == nil {
		return
	}
	if r.hold.timer != nil {
		r.hold.timer.Reset(time.Until(r.end()))
	}
	left := ttl - time.Since(call)
	if r.lane == nil || left <= 0 || !time.Now().Before(r.hold.until) { // the server may have kept it for longer than it has promised
		return
	}
	r.hold.until = time.Now().Add(left)
	op := r.lane.Call(history.Extend, -1)
	op.Token, op.TTL, op.Outcome, op.Until = history.Hash(r.hold.token), left, history.OK, history.Forever
	r.lane.Return(op)
}

// begin lets a grant stand on the lease. It returns the last proof and how long that is good for.
func (r *renewals) begin(h *hold, strict bool) (proof time.Time, ttl time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hold, h.until = h, r.end()
	if strict {
		h.timer = time.AfterFunc(time.Until(r.end()), func() { r.late(h) })
	}
	return r.proof, r.ttl
}

// late ends a hold whose last proof is over.
func (r *renewals) late(h *hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hold == h && !time.Now().Before(r.end()) {
		h.lose()
	}
}

// finish ends what stands on the lease: nothing of it is recorded any more.
func (r *renewals) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.hold; h != nil {
		if h.timer != nil {
			h.timer.Stop()
		}
		if h.stop != nil {
			h.stop()
		}
		r.hold = nil
	}
}
