package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"hammerlock/beyond/proof"
	"hammerlock/history"
	"hammerlock/locks"
)

var mutex = onEtcd(locks.Spec{
	Name: "etcd-mutex",
	Doc: "client/v3 concurrency.Mutex on a session of its own, given back only if it is still the owner's (IsOwner); " +
		"the create revision is the fence; its holder heeds Done, and the end of the last renewal that was " +
		"answered, which comes sooner",
	Source: "go.etcd.io/etcd/client/v3/concurrency v3.7.3",
	Assumes: "a majority keeps what it acknowledged, and a leader that has lost its majority renews no lease; " +
		"the holder heeds Lost",
	Open: func(e locks.Env) (locks.Lock, error) { return open(e, mutexLock{strict: true, heeds: true}) },
})

func onEtcd(l locks.Spec) locks.Spec {
	l.Sites, l.Engine = locks.OneSite, engineName
	l.Claims = history.Claims{Excludes: true, Expires: true, Owned: true, Fences: true, Renews: true}
	return l
}

type mutexLock struct {
	strict bool // the hold is lost when its lease is no longer proved
	heeds  bool // the hold is lost with the session
	elects bool // the lock is an election, not a mutex

	env     locks.Env
	client  *client
	session *session
	held    map[string]*grant // by token
	ready   map[string]*grant // by key: granted while waiting
	tries   int
}

// grant is a hold with its key.
type grant struct {
	*hold
	key     string
	owner   clientv3.Cmp // condition: the key still belongs to the owner
	session *session
}

func open(e locks.Env, l mutexLock) (locks.Lock, error) {
	c, err := openClient(e)
	if err != nil {
		return nil, err
	}
	l.env, l.client, l.held, l.ready = e, c, map[string]*grant{}, map[string]*grant{}
	return &l, nil
}

// Acquire calls TryLock. If Wait was granted the lock before, Acquire returns that grant.
func (l *mutexLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, call := locks.Lease{Key: key}, time.Now()
	if g, ok := l.ready[key]; ok {
		delete(l.ready, key)
		if !g.session.over() {
			return l.granted(ctx, call, g, lease)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, err := l.within(ctx, ttl)
	if err != nil {
		return lease, fmt.Errorf("%w: open a session: %w", locks.ErrRefused, err) // a lease without a key holds no lock
	}
	g, err := l.try(ctx, s, key)
	l.tries++
	if err == nil {
		return l.granted(ctx, call, g, lease)
	}
	if err = outcome(err); errors.Is(err, locks.ErrBusy) {
		return lease, err
	}
	if errors.Is(err, locks.ErrRefused) {
		s.orphan()
		return lease, err
	}
	return l.doubt(g, lease, err)
}

// try calls TryLock, or stands for an election if there is no leader.
func (l *mutexLock) try(ctx context.Context, s *session, key string) (*grant, error) {
	if l.elects {
		return stand(ctx, s, key, true)
	}
	m := mutexOf(s, key)
	err := m.TryLock(ctx)
	return &grant{key: m.Key(), owner: m.IsOwner(), session: s}, err
}

// doubt keeps a grant that may exist, until it is released. It returns the error for Acquire.
func (l *mutexLock) doubt(g *grant, lease locks.Lease, err error) (locks.Lease, error) {
	lease.Token = fmt.Sprintf("%s?%d", g.key, l.tries)
	l.held[lease.Token] = &grant{session: g.session}
	return lease, err
}

func mutexOf(s *session, key string) *concurrency.Mutex {
	return concurrency.NewMutex(s.Session, strings.TrimSuffix(directory(key), "/"))
}

// Wait calls Lock, which waits in the library's own queue, in the order of create revisions. The next Acquire returns
// the grant.
func (l *mutexLock) Wait(ctx context.Context, key string) (history.Wake, error) {
	if ctx.Err() != nil {
		if g, ok := l.ready[key]; ok {
			delete(l.ready, key)
			g.session.orphan()
		}
		return history.Poll, context.Cause(ctx)
	}
	s := l.session
	if s == nil || s.over() {
		return history.Poll, concurrency.ErrSessionExpired
	}
	// When ctx ends, the library removes its key, and waits for the reply as long as its client lives. So the
	// client is ended after callTimeout.
	late := context.AfterFunc(ctx, func() { time.AfterFunc(callTimeout, s.end) })
	g, back, err := l.queue(ctx, s, key)
	if !late() && !back {
		s.orphan() // removes a key that may be left
		return history.Poll, context.Cause(ctx)
	}
	if err != nil {
		s.orphan()
		return history.Poll, err
	}
	l.ready[key] = g
	return history.Signal, nil
}

// queue waits in the library's queue. The result back tells whether the library has removed its key again.
func (l *mutexLock) queue(ctx context.Context, s *session, key string) (g *grant, back bool, err error) {
	if l.elects {
		g, err = stand(ctx, s, key, false)
		return g, false, err
	}
	m := mutexOf(s, key)
	err = m.Lock(ctx)
	return &grant{key: m.Key(), owner: m.IsOwner(), session: s}, m.Key() == takenBack, err
}

// takenBack is the library's key for a mutex that was released or refused.
const takenBack = "\x00"

// granted makes the lease of a mutex. The lease ends at the time that the session's last answered renewal has promised.
func (l *mutexLock) granted(ctx context.Context, call time.Time, g *grant, lease locks.Lease) (locks.Lease, error) {
	if l.strict && g.session.lease.Left() < g.session.ttl/2 {
		if _, err := l.client.KeepAliveOnce(ctx, g.session.Lease()); err != nil {
			return l.doubt(g, lease, locks.AfterGrant(outcome(err)))
		}
	}
	lease.Fence = g.owner.GetCompare().GetCreateRevision()
	lease.Token = fmt.Sprintf("%s@%d", g.key, lease.Fence)
	h := &hold{Hold: proof.NewHold(lease.Token)}
	lease.Spent = g.session.ttl - g.session.lease.Begin(h.Hold, l.strict).Sub(call)
	if l.heeds {
		h.stop = context.AfterFunc(g.session.Ctx(), h.Lose)
	}
	if l.heeds || l.strict {
		lease.Lost = h.Lost
	}
	g.hold = h
	l.held[lease.Token] = g
	return lease, nil
}

// within returns the worker's session. If the session is over, or has another TTL, it opens a new one.
func (l *mutexLock) within(ctx context.Context, ttl time.Duration) (*session, error) {
	if s := l.session; s != nil && !s.over() && s.ttl == ttl {
		return s, nil
	}
	if l.session != nil {
		l.session.orphan()
		l.session = nil
	}
	var err error
	l.session, err = l.client.open(ctx, ttl, l.strict, l.env.Renewals)
	return l.session, err
}

// Extend returns ErrLost for a lost hold, and errors.ErrUnsupported for others: the library alone renews leases.
func (l *mutexLock) Extend(_ context.Context, lease locks.Lease, _ time.Duration) (locks.Lease, error) {
	if g, ok := l.held[lease.Token]; !ok || g.session.over() {
		return lease, locks.ErrLost
	}
	return lease, fmt.Errorf("etcd mutex: %w", errors.ErrUnsupported)
}

// Release deletes the key only if it still belongs to the owner. It does not call the library's Unlock, which
// always succeeds. A grant that may exist ends with its session.
func (l *mutexLock) Release(ctx context.Context, lease locks.Lease) error {
	g, ok := l.held[lease.Token]
	if !ok {
		return locks.ErrLost
	}
	delete(l.held, lease.Token)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if g.hold == nil {
		return g.session.revoke(ctx)
	}
	g.session.finish(g.hold)
	answer, err := l.client.Txn(ctx).If(g.owner).Then(clientv3.OpDelete(g.key)).Commit()
	switch {
	case err != nil:
		g.session.orphan() // the lock may not be released, so do not renew it any more
		return outcome(err)
	case !answer.Succeeded:
		return locks.ErrLost
	}
	return nil
}

// Close releases nothing: holds end with their leases.
func (l *mutexLock) Close() error {
	for _, g := range l.held {
		g.session.finish(g.hold)
	}
	clear(l.held)
	clear(l.ready)
	if l.session != nil {
		l.session.orphan()
		l.session = nil
	}
	return l.env.Process.Drop(clientKey{l.env.Places[0]})
}
