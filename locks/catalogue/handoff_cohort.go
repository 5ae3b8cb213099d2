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

// cohortHolds limits how often the workers of a process pass one grant of the server on to each other: the grant
// serves at most this number of holds. Each hold has its own fencing token.
const cohortHolds = 32

// cohortLock is the lock of one worker. The workers of a process that want the same key form a cohort. They pass the
// lock on to each other without a request to the server.
type cohortLock struct {
	*handoffLock
	all    *cohorts
	places map[string]*cohortPlace // by key: places within the process
}

type cohorts struct {
	mu    sync.Mutex
	byKey map[string]*cohort
}

// Close lets the cohorts' timers run: a timer fires when its lease ends, and then does no harm.
func (*cohorts) Close() error { return nil }

type cohortsKey struct{ client redis.UniversalClient }

// cohort is the group of workers of a process that want the same key. Its leader asks the server or holds the lock.
// The others wait in line.
type cohort struct {
	mu     sync.Mutex
	leader *cohortPlace
	held   locks.Lease   // the server's grant; no token = the leader is still asking
	spare  time.Duration // the server's lease may last so much longer than held.Until
	vague  bool          // the server answered so late that the end of its lease is not known
	passed int           // how often the grant was passed on
	line   []*cohortPlace
	expiry *time.Timer // makes the next worker the leader when the lease ends
}

// cohortPlace is a worker's place in the line of its process.
type cohortPlace struct {
	cohort *cohort
	ttl    time.Duration
	turn   chan handedOn
	leads  bool // the worker knows that it is the leader
}

// handedOn is what the next worker in line receives. If the lease has a token, the worker has the lock. Without a
// token, the worker becomes the leader and must ask the server.
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

// Acquire asks the server if the cohort has no leader. Otherwise the worker joins the line of its process, and
// Acquire returns ErrBusy.
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
		l.begin(p, lease, time.Now())
	}
	return lease, err
}

// enter makes the worker the leader and returns true, if the cohort has no leader. Otherwise the worker joins the
// line, and enter returns false.
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

// begin records a grant of the server to the leader; answered is the time of the server's answer.
func (l *cohortLock) begin(p *cohortPlace, lease locks.Lease, answered time.Time) {
	delete(l.places, lease.Key)
	c := p.cohort
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held, c.passed = lease, 0
	c.lasts(p.ttl, answered)
}

// lasts records how exactly the end of the server's lease is known. The lease began between the request, from which
// Until counts, and the answer. The end is vague if the answer took longer than 0.1 % of the TTL plus 1 ms.
func (c *cohort) lasts(ttl time.Duration, answered time.Time) {
	c.spare = locks.Drift(ttl)
	c.vague = ttl-c.spare-c.held.Until.Sub(answered) > ttl/1000+time.Millisecond
	c.expire()
}

// expire starts a timer for the end of the lease. If the lock was not released by then, the next worker becomes the
// leader.
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

// next makes the first worker in line the leader, and tells it so. Without a line the cohort has no leader.
func (c *cohort) next() {
	c.leader, c.held = nil, locks.Lease{}
	if len(c.line) > 0 {
		c.leader, c.line = c.line[0], c.line[1:]
		c.leader.turn <- handedOn{}
	}
}

// grantOf returns the token of the server's grant. A hold that was passed on has this token with "#" and a number
// added.
func grantOf(token string) string {
	of, _, _ := strings.Cut(token, "#")
	return of
}

func (l *cohortLock) Handed(key string) (lease locks.Lease, since time.Time, ok bool) {
	p, ok := l.places[key]
	if !ok {
		return lease, since, false
	}
	if p.leads {
		if lease, since, ok = l.handoffLock.Handed(key); ok {
			l.begin(p, lease, since)
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
		c.held.Until = lease.Until
		c.lasts(ttl, time.Now())
	}
	return lease, err
}

// another reports whether the grant of this token was passed on, so that another worker of the process has the lock.
func (c *cohort) another(token string) bool {
	return c.held.Token != token && grantOf(c.held.Token) == grantOf(token)
}

// Release passes the lock to the next worker in line, or releases it on the server.
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
		c.held.Token = "" // without a token the grant is not passed on again
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

// pass gives the lock to the next worker in line, and reports whether it did. The rest of the lease must suit the
// TTL that this worker wants. It must be at least half of the TTL, and with spare added at most the TTL. If the end
// of the lease is vague, pass returns false, because the worker could not be told when the lease ends.
func (c *cohort) pass() bool {
	if len(c.line) == 0 || c.passed+1 == cohortHolds || c.vague {
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

// Wait waits for the leader of the process. If the worker itself is the leader, it waits for the server's grant.
func (l *cohortLock) Wait(ctx context.Context, key string) (history.Wake, error) {
	p, ok := l.places[key]
	switch {
	case !ok:
		return history.Poll, errors.Join(errNoPlace, context.Cause(ctx))
	case !p.leads && ctx.Err() == nil:
		select {
		case h := <-p.turn:
			p.turn <- h // put back for the next call of Handed
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
	if lease := l.leave(key, p); lease.Token != "" { // the lock was passed to this worker just now
		left, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.ttl)
		defer cancel()
		err = errors.Join(err, l.Release(left, lease))
	}
	return history.Poll, err
}

// leave gives up a worker's place. If the worker is the leader but does not have the lock, the next worker becomes
// the leader. If the lock was passed to the worker just now, leave returns its lease; otherwise the lease has no
// token.
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

// Close gives up the worker's places. If the worker holds the lock, the next worker becomes the leader when the
// lease ends.
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
