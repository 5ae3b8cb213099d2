package catalogue

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var handoffCohort = locks.Spec{
	Name: "handoff-cohort",
	Doc: "handoff that a process asks for once: it hands the lock to its own waiters, without a round trip, " +
		"at most 32 times in a row and " +
		"not in the second half of the lease",
	Source:  "Dice, Marathe and Shavit, Lock Cohorting: a global lock, local locks and a bound on passing inside",
	Sites:   locks.OneSite,
	Assumes: handoffAssumes,
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Fences: true, Wakes: true,
		Begins: true},
	Listens: true,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &cohortLock{handoffLock: newHandoff(e, cohortHolds), places: map[string]*cohortPlace{}}, nil
	},
}

// cohortHolds is how many holds in a row a process may have by one grant of the server. Each has its own fencing token.
const cohortHolds = 32

// cohortLock is the lock of one worker. The workers of a process that want the same key share a cohort, and hand the
// lock to each other without asking the server.
type cohortLock struct {
	*handoffLock
	all    *cohorts
	places map[string]*cohortPlace // key -> place within the process
}

type cohorts struct {
	mu    sync.Mutex
	byKey map[string]*cohort
}

// Close need not stop timers: when they fire, they find that the lease is over and do nothing.
func (*cohorts) Close() error { return nil }

type cohortsKey struct{ client redis.UniversalClient }

// cohort is the group of workers of a process that want the same key. Their leader asks the server or holds the lock.
// The others wait in a queue within the process.
type cohort struct {
	mu     sync.Mutex
	leader *cohortPlace
	held   locks.Lease   // the server's grant to the leader; without a token while the leader still asks
	spare  time.Duration // how much longer the server's lease is than the holder believes
	passed int           // how often the grant was passed on within the process
	line   []*cohortPlace
	expiry *time.Timer // of the lease
}

// cohortPlace is a worker's place in the queue of its process.
type cohortPlace struct {
	cohort *cohort
	ttl    time.Duration
	turn   chan handedOn
	leads  bool // its worker knows that it is the leader
}

// handedOn is what the next in the queue receives: a lease, or a lease without a token. In the second case it becomes
// the leader and asks the server.
type handedOn struct {
	lease locks.Lease
	since time.Time
}

func (l *cohortLock) cohort(key string) (*cohort, error) {
	if l.all == nil {
		all, err := locks.Share(l.env.Process, cohortsKey{l.client}, func() (*cohorts, error) {
			return &cohorts{byKey: map[string]*cohort{}}, nil
		})
		if err != nil {
			return nil, err
		}
		l.all = all
	}
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	c, ok := l.all.byKey[key]
	if !ok {
		c = &cohort{}
		l.all.byKey[key] = c
	}
	return c, nil
}

// Acquire asks the server if no worker of the process holds the lock or asks for it. Otherwise it takes a place in the
// queue of the process.
func (l *cohortLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	if lease, since, ok := l.Handed(key); ok {
		lease.Spent += time.Since(since)
		return lease, nil
	}
	p, ok := l.places[key]
	if !ok {
		c, err := l.cohort(key)
		if err != nil {
			return locks.Lease{Key: key}, err
		}
		p = &cohortPlace{cohort: c, ttl: ttl, turn: make(chan handedOn, 1)}
		l.places[key] = p
		p.leads = c.enter(p)
	}
	if !p.leads {
		return locks.Lease{Key: key}, locks.ErrBusy
	}
	lease, err := l.handoffLock.Acquire(ctx, key, ttl)
	if err == nil {
		l.begin(p, lease)
	}
	return lease, err
}

// enter makes a worker the leader if there is none. It returns whether it is.
func (c *cohort) enter(p *cohortPlace) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leader == nil {
		c.leader = p
		return true
	}
	c.line = append(c.line, p)
	return false
}

// begin records the server's grant to the leader.
func (l *cohortLock) begin(p *cohortPlace, lease locks.Lease) {
	delete(l.places, lease.Key)
	c := p.cohort
	c.mu.Lock()
	defer c.mu.Unlock()
	// the server may have begun the lease as late as now
	c.held, c.spare, c.passed = lease, p.ttl-time.Until(lease.Until), 0
	c.expire()
}

// expire makes the next worker the leader when the lease has ended, even if the holder has not released.
func (c *cohort) expire() {
	if c.expiry != nil {
		c.expiry.Stop()
	}
	of := grantOf(c.held.Token)
	c.expiry = time.AfterFunc(time.Until(c.held.Until), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.held.Token != "" && grantOf(c.held.Token) == of && !time.Now().Before(c.held.Until) {
			c.next()
		}
	})
}

// next makes the first in the queue the leader.
func (c *cohort) next() {
	c.leader, c.held = nil, locks.Lease{}
	if len(c.line) > 0 {
		c.leader, c.line = c.line[0], c.line[1:]
		c.leader.turn <- handedOn{}
	}
}

// grantOf returns the token that the server knows for a hold. A hold that was passed on within the process has that
// token with a number appended.
func grantOf(token string) string {
	of, _, _ := strings.Cut(token, "#")
	return of
}

// Handed returns a lease that was passed on within the process, or a grant of the server.
func (l *cohortLock) Handed(key string) (lease locks.Lease, since time.Time, ok bool) {
	p, ok := l.places[key]
	if !ok {
		return lease, since, false
	}
	if p.leads {
		if lease, since, ok = l.handoffLock.Handed(key); ok {
			l.begin(p, lease)
		}
		return lease, since, ok
	}
	select {
	case h := <-p.turn:
		if p.leads = h.lease.Token == ""; !p.leads {
			delete(l.places, key)
		}
		return h.lease, h.since, !p.leads
	default:
		return lease, since, false
	}
}

// Extend extends the lease of the server's grant.
func (l *cohortLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	c, err := l.cohort(lease.Key)
	if err != nil {
		return lease, err
	}
	c.mu.Lock()
	over := c.another(lease.Token)
	c.mu.Unlock()
	if over {
		return lease, locks.ErrLost
	}
	token := lease.Token
	lease.Token = grantOf(token)
	lease, err = l.handoffLock.Extend(ctx, lease, ttl)
	lease.Token = token
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.held.Token == token {
		c.held.Until, c.spare = lease.Until, ttl-time.Until(lease.Until)
		c.expire()
	}
	return lease, err
}

// another tells whether another worker of the process now holds the lock by the same grant.
func (c *cohort) another(token string) bool {
	return c.held.Token != token && grantOf(c.held.Token) == grantOf(token)
}

// Release hands the lock to the next in the queue of the process, or to the first in the queue on the server.
func (l *cohortLock) Release(ctx context.Context, lease locks.Lease) error {
	c, err := l.cohort(lease.Key)
	if err != nil {
		return err
	}
	c.mu.Lock()
	mine := c.held.Token == lease.Token
	if mine && c.pass() {
		c.mu.Unlock()
		return nil
	}
	over := c.another(lease.Token)
	if mine {
		c.held.Token = "" // without a token, the grant is not passed on again
		c.expiry.Stop()
	}
	c.mu.Unlock()
	if over {
		return locks.ErrLost
	}
	lease.Token = grantOf(lease.Token)
	err = l.handoffLock.Release(ctx, lease)
	if mine {
		c.mu.Lock()
		c.next()
		c.mu.Unlock()
	}
	return err
}

// pass hands the grant to the next in the queue of the process. The rest of the lease must be long enough for its
// visit, and not longer than it asked for.
func (c *cohort) pass() bool {
	if len(c.line) == 0 || c.passed+1 == cohortHolds {
		return false
	}
	p, left := c.line[0], time.Until(c.held.Until)
	if left < p.ttl/2 || left+c.spare > p.ttl {
		return false
	}
	c.line = c.line[1:]
	c.leader = p
	c.passed++
	c.held.Fence++
	c.held.Token = grantOf(c.held.Token) + "#" + strconv.Itoa(c.passed)
	next := c.held
	next.Spent = p.ttl - left - c.spare
	p.turn <- handedOn{next, time.Now()}
	return true
}

// Wait waits in the queue of the process or, if the worker is the leader, on the server.
func (l *cohortLock) Wait(ctx context.Context, key string) (history.Wake, error) {
	p, ok := l.places[key]
	switch {
	case !ok:
		return history.Poll, errors.Join(errNoPlace, context.Cause(ctx))
	case !p.leads && ctx.Err() == nil:
		select {
		case h := <-p.turn:
			p.turn <- h // for Handed
			return history.Signal, nil
		case <-ctx.Done():
		}
	case p.leads:
		wake, err := l.handoffLock.Wait(ctx, key)
		if ctx.Err() == nil {
			return wake, err
		}
		l.leave(key, p)
		return wake, err
	}
	err := context.Cause(ctx)
	if lease := l.leave(key, p); lease.Token != "" { // it was passed on just now
		left, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.ttl)
		defer cancel()
		err = errors.Join(err, l.Release(left, lease))
	}
	return history.Poll, err
}

// leave gives up a place in the queue. If the worker was the leader, the next one is. It returns a lease if one was
// passed to it meanwhile.
func (l *cohortLock) leave(key string, p *cohortPlace) (lease locks.Lease) {
	delete(l.places, key)
	c := p.cohort
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.line, p); i >= 0 {
		c.line = slices.Delete(c.line, i, i+1)
		return lease
	}
	select {
	case h := <-p.turn:
		lease = h.lease
	default:
	}
	if c.leader == p && c.held.Token == "" {
		c.next()
	}
	return lease
}

// Close gives up the places of a worker. If it holds the lock, the next worker gets it when the lease ends.
func (l *cohortLock) Close() error {
	for key, p := range l.places {
		l.leave(key, p)
	}
	err := l.handoffLock.Close()
	if l.all == nil {
		return err
	}
	l.all = nil
	return errors.Join(err, l.env.Process.Drop(cohortsKey{l.client}))
}
