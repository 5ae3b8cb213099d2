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

// cohortHolds is the most consecutive holds of a process in one grant of the server. Each has its own fencing token.
const cohortHolds = 32

// cohortLock is one worker's lock. The workers of a process share a cohort for each key.
type cohortLock struct {
	*handoffLock
	all    *cohorts
	places map[string]*cohortPlace // its places in the process, by key
}

type cohorts struct {
	mu    sync.Mutex
	byKey map[string]*cohort
}

// Close has nothing to end: timers of leases that are over do nothing.
func (*cohorts) Close() error { return nil }

type cohortsKey struct{ client redis.UniversalClient }

// cohort has the workers of a process that want one key. Their leader asks the server, or has the lock. The others
// stand in line.
type cohort struct {
	mu     sync.Mutex
	leader *cohortPlace
	held   locks.Lease   // the server's grant to the leader; its token is empty while the leader asks
	spare  time.Duration // by how much the server's lease is longer than the holder believes
	passed int           // how often the grant was passed on
	line   []*cohortPlace
	expiry *time.Timer // of the lease
}

// cohortPlace is a worker's place in its process.
type cohortPlace struct {
	cohort *cohort
	ttl    time.Duration
	turn   chan handedOn
	leads  bool // its worker knows that it leads
}

// handedOn is passed to the next in line: a lease, or a lease without a token. In the second case it leads and asks the
// server.
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

// Acquire asks the server if no worker of the process has the lock or asks for it. Otherwise it takes a place in the
// process.
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

// enter makes a place the leader's if there is no leader, and returns whether it is.
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
	c.held, c.spare, c.passed = lease, locks.Drift(p.ttl), 0
	c.expire()
}

// expire makes the next in line the leader when the lease is over, even if its holder is late.
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

// next makes the first in line the leader.
func (c *cohort) next() {
	c.leader, c.held = nil, locks.Lease{}
	if len(c.line) > 0 {
		c.leader, c.line = c.line[0], c.line[1:]
		c.leader.turn <- handedOn{}
	}
}

// grantOf returns the server's token of a hold. A hold that was passed on in the process has the same token with a
// number added.
func grantOf(token string) string {
	of, _, _ := strings.Cut(token, "#")
	return of
}

// Handed returns the lease that the previous holder has passed on, or the server's grant.
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

// Extend extends the lease of the grant.
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
		c.held.Until, c.spare = lease.Until, locks.Drift(ttl)
		c.expire()
	}
	return lease, err
}

// another tells whether another hold of the process has this hold's grant by now.
func (c *cohort) another(token string) bool {
	return c.held.Token != token && grantOf(c.held.Token) == grantOf(token)
}

// Release passes the lock on: to the next of the process, or to the first in line at the server.
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
		c.held.Token = "" // it is not passed on any more
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

// pass hands the grant to the next in the process, if the rest of the lease is long enough for its visit and no longer
// than it asked for.
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

// Wait waits in the process or, for the leader, at the server.
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
	if lease := l.leave(key, p); lease.Token != "" { // it was passed on at this moment
		left, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.ttl)
		defer cancel()
		err = errors.Join(err, l.Release(left, lease))
	}
	return history.Poll, err
}

// leave gives up a place. If it was the leader's, another leads. It returns a lease that was passed to it meanwhile.
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

// Close gives up the places of a worker. Its hold is passed on when the lease is over.
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
