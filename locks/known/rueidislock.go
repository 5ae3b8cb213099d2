package known

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"hammerlock/history"
	"hammerlock/locks"
	"hammerlock/topologies"
)

var libRueidislock = locks.Spec{
	Name: "rueidislock",
	Doc: "redis/rueidis/rueidislock with its defaults, KeyValidity being the TTL: three keys, renewed at half of it; " +
		"believed in until its context is canceled; waits for push invalidations",
	Source:  "github.com/redis/rueidis/rueidislock v1.0.79",
	Library: true,
	Sites:   locks.OneSite,
	Assumes: "the server keeps its keys for the lease and its clock agrees with the client's; " +
		"the holder heeds its context",
	Needs: rueidisNeeds,
	Expect: []locks.Expectation{ // docs/FINDINGS.md
		{Cause: history.RenewalFailure, Scenario: "renewal-cut"},
		// Each extension triggers the next one. Runs in which all holds end before the first extension do not show
		// this.
		{Cause: history.Storm, Scenario: "cost", Sometimes: true},
		// As in the scenario "renewal-cut": the leader cannot reach the servers, so it cannot renew.
		{Cause: history.RenewalFailure, Scenario: "leader", Sometimes: true},
		late, givesUp, stays,
	},
	Claims: history.Claims{Excludes: true, Expires: true, Renews: true}, Outlives: true,
	Open: func(e locks.Env) (locks.Lock, error) { return newRueidis(e, rueidislock.LockerOption{}) },
}

// late is finding 2: a holder whose renewal waits for a dead server is told when the server is back. Another worker may
// have been granted the lock a few milliseconds before.
var late = locks.Expectation{Cause: history.RenewalFailure, Scenario: "forgetful", Sometimes: true}

// givesUp is what the library does when a server refuses its renewal: it gives up the lock at once, although the lease
// still lasts.
var givesUp = locks.Expectation{Cause: history.PrematureLoss, Scenario: "refused-writes", Sometimes: true}

// stays is the failure of a client that keeps its connection to a former primary. Only topologies without Sentinel
// and without Cluster show it.
var stays = locks.Expectation{Cause: history.Unanswered, Scenario: "failover", Sometimes: true}

// libRueidislockNoLoop is set up as the library's README recommends, except that it keeps the default of three keys
// for each lock; the README uses one.
var libRueidislockNoLoop = locks.Spec{
	Name: "rueidislock-noloop",
	Doc: "rueidislock with NoLoopTracking: it is not told of its own changes, " +
		"each of which it would answer with an extension",
	Source:  "github.com/redis/rueidis/rueidislock v1.0.79, README",
	Library: true,
	Sites:   locks.OneSite,
	Assumes: libRueidislock.Assumes,
	Needs:   rueidisNeeds,
	Expect: []locks.Expectation{
		// as for libRueidislock, but without the storm of extensions
		libRueidislock.Expect[0], {Cause: history.RenewalFailure, Scenario: "leader"},
		// On a slow machine, a try whose answers are late deletes its own key, and no client hears of that.
		{Cause: history.Deadlock, Scenario: "lost-wakeup", Sometimes: true},
		late, givesUp, stays,
	},
	Claims: libRueidislock.Claims, Outlives: true,
	Open: func(e locks.Env) (locks.Lock, error) {
		return newRueidis(e, rueidislock.LockerOption{NoLoopTracking: true})
	},
}

func newRueidis(e locks.Env, o rueidislock.LockerOption) (locks.Lock, error) {
	if err := (locks.Spec{Name: "rueidislock", Needs: rueidisNeeds}).Runs(e.Server); err != nil {
		return nil, err
	}
	if len(e.Places) != 1 {
		return nil, fmt.Errorf("%w: rueidislock makes its own connections and was not told where to", locks.ErrServer)
	}
	if e.Within != "" {
		o.KeyPrefix = e.Within + "rueidislock"
	}
	return &rueidisLock{env: e, option: o, held: map[string]*rueidisHold{}, ready: map[string]*rueidisHold{}}, nil
}

// rueidisNeeds lists the servers with RESP3 and client tracking, which the library requires.
var rueidisNeeds = []locks.Release{{Name: "Redis", Since: "7.0"}, {Name: "Valkey", Since: "7.2"},
	{Name: "Redict", Since: "7.3"}}

// rueidisLock is one worker's use of a locker. The workers of a process share the locker, as in an application.
type rueidisLock struct {
	env    locks.Env
	option rueidislock.LockerOption
	locker *rueidisLocker
	ttl    time.Duration           // TTL of the locker
	held   map[string]*rueidisHold // by token
	ready  map[string]*rueidisHold // granted during Wait, by key
}

// rueidisLocker is the library's locker. Each locker has one TTL for all its holds.
type rueidisLocker struct{ rueidislock.Locker }

type rueidisKey struct {
	site   *topologies.Site
	ttl    time.Duration
	noLoop bool
}

func (l *rueidisLock) key(ttl time.Duration) rueidisKey {
	return rueidisKey{l.env.Places[0], ttl, l.option.NoLoopTracking}
}

func (l *rueidisLocker) Close() error {
	l.Locker.Close()
	return nil
}

func (l *rueidisLock) open(ttl time.Duration) error {
	if l.locker != nil && l.ttl == ttl {
		return nil
	}
	if err := l.drop(); err != nil {
		return err
	}
	locker, err := locks.Share(l.env.Process, l.key(ttl), func() (*rueidisLocker, error) {
		o := l.option
		o.ClientOption, o.KeyValidity = rueidisOptions(l.env.Places[0], l.env.Source), ttl
		o.ClientBuilder = func(o rueidis.ClientOption) (rueidis.Client, error) {
			c, err := rueidis.NewClient(o)
			return observed{c}, err
		}
		locker, err := rueidislock.NewLocker(o)
		return &rueidisLocker{locker}, err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", topologies.ErrUnreachable, err)
	}
	l.locker, l.ttl = locker, ttl
	return nil
}

// rueidisOptions makes the library connect as the suite's own clients do. The suite's proxies can then tell
// processes apart, and the library finds a primary that an operator has moved.
func rueidisOptions(site *topologies.Site, source int) rueidis.ClientOption {
	dial, a := site.Dialer(source), site.Access()
	o := rueidis.ClientOption{InitAddress: a.Addrs, Username: a.User, Password: a.Password, SelectDB: a.DB}
	o.DialCtxFn = func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return dial(ctx, "tcp", addr)
	}
	if site.Master != "" {
		user, password := site.SentinelLogin()
		o.Sentinel = rueidis.SentinelOption{MasterSet: site.Master, Username: user, Password: password}
	}
	o.ForceSingleClient = site.Master == "" && !site.Cluster
	return o
}

func (l *rueidisLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	if h, ok := l.ready[key]; ok {
		delete(l.ready, key)
		if h.ctx.Err() == nil {
			return l.hold(h, time.Since(h.asked())), nil
		}
		h.end()
	}
	if err := l.open(ttl); err != nil {
		return locks.Lease{Key: key}, err
	}
	h := newRueidisHold(key, ttl, l.env.Renewals)
	var err error
	h.ctx, h.cancel, err = l.locker.TryWithContext(h.within(ctx), key)
	switch {
	case errors.Is(err, rueidislock.ErrNotLocked):
		h.end()
		return locks.Lease{Key: key}, locks.ErrBusy
	case err != nil:
		h.end()
		return locks.Lease{Key: key, Token: h.name()}, locks.AfterGrant(err)
	}
	return l.hold(h, 0), nil
}

func (l *rueidisLock) hold(h *rueidisHold, spent time.Duration) locks.Lease {
	token := h.name()
	l.held[token] = h
	return locks.Lease{Key: h.key, Token: token, Spent: spent, Lost: h.ctx.Done()}
}

// Extend never extends: only the library renews leases. It returns ErrLost for a lost hold and errors.ErrUnsupported
// for a valid one.
func (l *rueidisLock) Extend(_ context.Context, lease locks.Lease, _ time.Duration) (locks.Lease, error) {
	h, ok := l.held[lease.Token]
	if !ok || h.ctx.Err() != nil {
		return lease, locks.ErrLost
	}
	return lease, fmt.Errorf("rueidislock: %w", errors.ErrUnsupported)
}

// Release cancels the hold. The library does not report whether the hold was valid, so Release checks for a loss
// that the library has reported before.
func (l *rueidisLock) Release(_ context.Context, lease locks.Lease) error {
	h, ok := l.held[lease.Token]
	if !ok {
		return locks.ErrLost // the library undoes an acquire that was not successful
	}
	delete(l.held, lease.Token)
	lost := h.ctx.Err() != nil
	h.end()
	if lost {
		return locks.ErrLost
	}
	return nil
}

// Wait makes the library's blocking call. If the lock is granted, Wait keeps the grant for the next Acquire.
func (l *rueidisLock) Wait(ctx context.Context, key string) (history.Wake, error) {
	if l.locker == nil {
		return history.Poll, nil
	}
	h := newRueidisHold(key, l.ttl, l.env.Renewals)
	granted, cancel := context.WithCancel(h.within(ctx))
	stop := context.AfterFunc(ctx, cancel)
	var err error
	var release context.CancelFunc
	h.ctx, release, err = l.locker.WithContext(granted, key)
	if err != nil {
		h.cancel = cancel
		h.end()
		return history.Poll, err
	}
	h.cancel = func() { release(); cancel() }
	if !stop() { // ctx was cancelled just when the lock was granted
		h.end()
		return history.Poll, context.Cause(ctx)
	}
	l.ready[key] = h
	return history.Signal, nil
}

func (l *rueidisLock) drop() error {
	if l.locker == nil {
		return nil
	}
	l.locker = nil
	return l.env.Process.Drop(l.key(l.ttl))
}

// Close releases all holds. It cannot abandon a hold as a dying worker would, because the library goes on renewing
// it. So only whole processes die in tests of this lock, see Spec.Outlives.
func (l *rueidisLock) Close() error {
	for _, h := range l.held {
		h.end()
	}
	for _, h := range l.ready {
		h.end()
	}
	clear(l.held)
	clear(l.ready)
	return l.drop()
}
