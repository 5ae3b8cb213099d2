package zookeeper

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"hammerlock/beyond/proof"
	"hammerlock/history"
	"hammerlock/locks"
	"hammerlock/topologies"
)

// Locks lists the locks, right ones first.
var Locks = []locks.Spec{recipe, library, deaf, reuse}

var recipe = onZooKeeper(locks.Spec{
	Name: "zookeeper",
	Doc: "the recipe: an ephemeral sequential node, whose owner waits for the one before it; czxid is the fence; " +
		"its holder heeds the end of the session and that of the last proof that the leader knows it, " +
		"and in doubt ends the session",
	Source:  "zookeeper.apache.org, ZooKeeper Recipes and Solutions: Locks",
	Assumes: "a majority keeps what it acknowledged; the holder heeds Lost",
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Fences: true, Ordered: true, Renews: true,
		Wakes: true},
	Open: func(e locks.Env) (locks.Lock, error) { return newQueue(e, true) },
})

func onZooKeeper(l locks.Spec) locks.Spec {
	l.Sites, l.Engine, l.Linger = locks.OneSite, engineName, linger
	return l
}

type queueLock struct {
	env     locks.Env
	all     *endings
	heeds   bool // the hold is lost when the session may be over
	session *session
	places  map[string]*place // by key: queued nodes
	held    map[string]*place // by token
}

func newQueue(e locks.Env, heeds bool) (locks.Lock, error) {
	all, err := shareEndings(e)
	return &queueLock{env: e, all: all, heeds: heeds}, err
}

// place is a node in a queue.
type place struct {
	token   string
	path    string // empty = it is unknown whether the node exists
	session *session
	hold    *proof.Hold
	unlock  func() error // removes the node; nil = remove it by its path
}

// sequence is the number of digits that the server appends to a node's name.
const sequence = 10

func number(name string) string { return name[max(len(name)-sequence, 0):] }

// Acquire takes a place in the queue if the worker has none, and checks whether its place is the first.
func (l *queueLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, call := locks.Lease{Key: key}, time.Now()
	s, err := l.within(ctx, ttl, false)
	if err != nil {
		return lease, err
	}
	p := l.places[key]
	if p == nil {
		p = &place{token: strings.ToLower(rand.Text()), session: s}
		if p.path, err = s.create(ctx, key, p.token+"-", "", zk.FlagEphemeral|zk.FlagSequence); err != nil {
			return l.doubt(lease, p, err)
		}
		l.places[key] = p
	}
	all, err := s.queue(ctx, key)
	if err != nil {
		return l.doubt(lease, p, err)
	}
	switch place := slices.Index(all, path.Base(p.path)); {
	case place < 0:
		delete(l.places, key)
		s.expire() // only the end of a session removes its nodes
		return lease, fmt.Errorf("%w: the session has ended", locks.ErrRefused)
	case place > 0:
		return lease, locks.ErrBusy
	}
	return l.granted(ctx, call, lease, p)
}

// granted makes the lease for the worker whose node is the first in the queue. The argument call is the time at
// which Acquire was called.
func (l *queueLock) granted(ctx context.Context, call time.Time, lease locks.Lease, p *place) (locks.Lease, error) {
	s := p.session
	stat, err := called(ctx, func() (*zk.Stat, error) {
		_, stat, err := s.conn.Exists(p.path)
		return stat, err
	})
	if err != nil || stat.EphemeralOwner == 0 {
		return l.doubt(lease, p, cmp.Or(err, zk.ErrNoNode))
	}
	for range 2 { // the second answer proves that the session lived at the time of the first
		if s.lease.Left() < s.ttl/2 {
			if err := s.sync(ctx); err != nil {
				return l.doubt(lease, p, err)
			}
		}
	}
	if s.lease.Left() <= 0 {
		return l.doubt(lease, p, errLate)
	}
	delete(l.places, lease.Key)
	p.hold = proof.NewHold(p.token)
	lasts := s.lease.Begin(p.hold, l.heeds)
	lease.Token, lease.Fence, lease.Spent = p.token, stat.Czxid, s.ttl-lasts.Sub(call)
	if l.heeds {
		lease.Lost = p.hold.Lost
	}
	l.held[p.token] = p
	return lease, nil
}

var errLate = errors.New("the session may be over before its holder hears of the grant")

// doubt keeps a grant that may exist, until it is released. It returns the error for Acquire.
func (l *queueLock) doubt(lease locks.Lease, p *place, err error) (locks.Lease, error) {
	delete(l.places, lease.Key)
	if errors.Is(err, zk.ErrNoServer) && p.path == "" {
		return lease, fmt.Errorf("%w: %w", topologies.ErrUnreachable, err)
	}
	lease.Token = p.token
	l.held[p.token] = p
	return lease, fmt.Errorf("zookeeper: %w", err)
}

// queue lists a lock's nodes in order.
func (s *session) queue(ctx context.Context, key string) ([]string, error) {
	all, err := called(ctx, func() ([]string, error) {
		all, _, err := s.conn.Children(directory(key))
		return all, err
	})
	slices.SortFunc(all, func(a, b string) int { return strings.Compare(number(a), number(b)) })
	return all, err
}

// within returns the worker's session. If the session is over, or has another TTL, it opens a new one. In a fragile
// session, a broken connection ends a hold.
func (l *queueLock) within(ctx context.Context, ttl time.Duration, fragile bool) (*session, error) {
	if s := l.session; s != nil && !s.over() && s.ttl == ttl {
		return s, nil
	}
	l.drop(true)
	l.places, l.held = map[string]*place{}, map[string]*place{}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var err error
	l.session, err = open(ctx, l.env, l.all, ttl, fragile)
	return l.session, err
}

// drop ends the session with all its places and holds. If polite is false, it sends nothing, like a process that dies.
func (l *queueLock) drop(polite bool) {
	if l.session != nil {
		l.session.end(polite)
		l.session = nil
	}
}

// Extend returns locks.ErrLost if the hold is lost. Otherwise it returns errors.ErrUnsupported: the session is
// renewed without calls of the worker.
func (l *queueLock) Extend(_ context.Context, lease locks.Lease, _ time.Duration) (locks.Lease, error) {
	if p, ok := l.held[lease.Token]; !ok || p.session.over() {
		return lease, locks.ErrLost
	}
	return lease, fmt.Errorf("zookeeper: %w", errors.ErrUnsupported)
}

// Release removes the node. If it is unknown whether the node exists, the session ends.
func (l *queueLock) Release(ctx context.Context, lease locks.Lease) error {
	p, ok := l.held[lease.Token]
	if !ok {
		return locks.ErrLost
	}
	delete(l.held, lease.Token)
	p.session.lease.Finish()
	err := errInDoubt
	switch {
	case p.unlock != nil:
		_, err = called(ctx, func() (struct{}, error) { return struct{}{}, p.unlock() })
	case p.hold != nil:
		err = p.session.remove(ctx, p.path)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return locks.ErrLost
	}
	if p.session == l.session {
		l.drop(true)
	}
	return err
}

var errInDoubt = errors.New("zookeeper: what may have been granted ends with its session")

func (s *session) remove(ctx context.Context, node string) error {
	call := time.Now()
	_, err := called(ctx, func() (struct{}, error) { return struct{}{}, s.conn.Delete(node, -1) })
	if err == nil {
		s.proved(call)
	}
	return err
}

// Wait waits until the previous place in the queue is gone. When ctx is done, it leaves the queue.
func (l *queueLock) Wait(ctx context.Context, key string) (history.Wake, error) {
	p := l.places[key]
	if p == nil {
		return history.Poll, context.Cause(ctx)
	}
	if ctx.Err() != nil {
		delete(l.places, key)
		if err := p.session.remove(context.WithoutCancel(ctx), p.path); err != nil && !errors.Is(err, zk.ErrNoNode) {
			l.drop(true)
		}
		return history.Poll, context.Cause(ctx)
	}
	all, err := p.session.queue(ctx, key)
	if err != nil {
		return history.Poll, err
	}
	place := slices.Index(all, path.Base(p.path))
	if place <= 0 {
		return history.Signal, nil
	}
	gone, err := called(ctx, func() (<-chan zk.Event, error) {
		exists, _, gone, err := p.session.conn.ExistsW(directory(key) + "/" + all[place-1])
		if err == nil && !exists {
			gone = closed
		}
		return gone, err
	})
	if err != nil {
		return history.Poll, err
	}
	select {
	case <-gone:
		return history.Signal, nil
	case <-p.session.gone:
		return history.Poll, zk.ErrSessionExpired
	case <-ctx.Done():
		return history.Poll, context.Cause(ctx)
	}
}

// closed is the event channel of a node that is already gone.
var closed = func() <-chan zk.Event {
	c := make(chan zk.Event)
	close(c)
	return c
}()

// Close ends an unused session. Holds and places end when the servers expire their session.
func (l *queueLock) Close() error {
	l.drop(len(l.held)+len(l.places) == 0)
	return l.env.Process.Drop(endingsKey{})
}
