package etcd

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"hammerlock/beyond/proof"
	"hammerlock/history"
)

// session belongs to one worker, because two mutexes on one session would both get the lock.
type session struct {
	*concurrency.Session
	lease *proof.Lease

	client *client
	ttl    time.Duration // as requested
	end    context.CancelFunc
}

// open makes a session. An etcd lease has whole seconds, and the server may grant more than requested. The library
// checks twice a second whether to renew, so one late answer ends the shortest lease. A strict session renews after a
// third of its lease.
func (c *client) open(ctx context.Context, ttl time.Duration, strict bool, lane *history.Lane) (*session, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	s := &session{client: c, ttl: ttl, end: end}
	call := time.Now()
	granted, err := c.Grant(ctx, int64((ttl+time.Second-1)/time.Second))
	if err != nil {
		end()
		return nil, err
	}
	lasts := time.Duration(granted.TTL) * time.Second
	s.lease = &proof.Lease{Lane: lane}
	renewed(s.lease, call, lasts)
	c.watch(int64(granted.ID), s.lease)
	// The library cleans up with its client's context, so this client ends with the session.
	own := clientv3.NewCtxClient(life)
	own.KV, own.Lease, own.Watcher = c.KV, c.Lease, c.Watcher
	if strict {
		own.Lease = punctual{c.Lease, lasts / 3}
	}
	if s.Session, err = concurrency.NewSession(own, concurrency.WithLease(granted.ID),
		concurrency.WithContext(life)); err != nil {
		end()
		c.watch(int64(granted.ID), nil)
	}
	return s, err
}

// punctual renews a lease at fixed intervals.
type punctual struct {
	clientv3.Lease
	every time.Duration
}

// KeepAlive renews until ctx is done or the lease is gone.
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

// orphan stops the renewals of the lease, so that it expires as after the death of the process.
func (s *session) orphan() {
	s.client.watch(int64(s.Lease()), nil)
	s.Orphan()
	s.end()
}

var errInDoubt = errors.New("etcd: what may have been granted ends with its lease")

// revoke ends the lease and all keys on it. The answer does not say whether there were any keys, so the error
// is always errInDoubt.
func (s *session) revoke(ctx context.Context) error {
	s.orphan()
	_, err := s.client.Revoke(ctx, s.Lease())
	return errors.Join(errInDoubt, err)
}

func (s *session) over() bool { return s.Ctx().Err() != nil }

// finish ends the hold on the session's lease.
func (s *session) finish(h *hold) {
	if h != nil && h.stop != nil {
		h.stop()
	}
	s.lease.Finish()
}

// renewed notes a renewal by its call time and the granted lease.
func renewed(l *proof.Lease, call time.Time, ttl time.Duration) {
	promised := call.Add(ttl)
	l.Renew(promised, promised.Add(-ttl/100-2*time.Millisecond))
}

// hold is one grant, which may end with its session.
type hold struct {
	*proof.Hold
	stop func() bool // stops the link to the session; nil = the hold does not end with its session
}
