package catalogue

import (
	"context"
	"crypto/rand"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

var leader = locks.Spec{
	Name: "leader",
	Doc: "lease as a leader election: a candidate hears by callbacks that it is elected, " +
		"and that it is deposed; a leader renews",
	Source:  "k8s.io/client-go/tools/leaderelection, its callbacks; the lease is redis.io's",
	Sites:   locks.OneSite,
	Assumes: keepsKeys + heedsLost,
	Expect: []locks.Expectation{
		{Cause: history.ServiceLoss, Fault: "flush"},
	},
	Claims: watchdog.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &leaderLock{renew(&leaseLock{e.Sites[0]}, e)}, nil
	},
}

// election is a leader election with the two callbacks that libraries usually have.
type election struct {
	lease   *renewing
	elected func(locks.Lease)
	deposed func()
}

// campaign tries once to become the leader. The worker stays the leader until it resigns or loses the lease.
func (e *election) campaign(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := e.lease.Acquire(ctx, key, ttl)
	if err != nil {
		return lease, err
	}
	e.elected(lease)
	term := e.lease.task(lease)
	go func() {
		<-term.done
		select {
		case <-term.lost:
			e.deposed()
		default: // the leader has resigned
		}
	}()
	return lease, nil
}

// leaderLock uses an election as a lock. The elected worker has the lock, and releases it by resigning.
type leaderLock struct{ *renewing }

func (l *leaderLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	var term locks.Lease
	lost := make(chan struct{})
	e := election{l.renewing, func(won locks.Lease) { term = won }, func() { close(lost) }}
	if lease, err := e.campaign(ctx, key, ttl); err != nil {
		return lease, err
	}
	term.Lost = lost
	return term, nil
}

var leaderSets = locks.Spec{
	Name:   "leader-sets",
	Doc:    "leader that renews by setting the key again",
	Source: "elections that write who leads at each tick, as heartbeats do",
	Sites:  locks.OneSite,
	Broken: "a leader that comes back late takes the place of its successor, and both lead",
	Expect: []locks.Expectation{{Cause: history.SilentReacquire}, {Cause: history.FalseExtension}},
	Claims: watchdog.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &leaderLock{renewBlindly(&settingLock{leaseLock{e.Sites[0]}}, e)}, nil
	},
}

type settingLock struct{ leaseLock }

func (l *settingLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	return from(lease, call, ttl, l.client.Set(ctx, lease.Key, lease.Token, ttl).Err())
}

var leaderForGood = locks.Spec{
	Name:   "leader-for-good",
	Doc:    "leader until the server says that it is not",
	Source: "n8n, multi-main-setup.ee.ts: an instance leads until a GET names another",
	Sites:  locks.OneSite,
	Broken: "it has no deadline of its own: a leader that is cut off leads on while its successor does",
	Expect: []locks.Expectation{{Cause: history.RenewalFailure}},
	Claims: watchdog.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &leaderLock{renewBlindly(&endlessLock{leaseLock{e.Sites[0]}}, e)}, nil
	},
}

// endlessLock is broken: it does not tell the holder when the lease ends.
type endlessLock struct{ leaseLock }

func (l *endlessLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := l.leaseLock.Acquire(ctx, key, ttl)
	lease.Until = time.Time{}
	return lease, err
}

func (l *endlessLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	return lease, extendOwned(ctx, l.client, lease.Key, lease.Token, ttl)
}

var leaderEarly = locks.Spec{
	Name:   "leader-early",
	Doc:    "leader that counts itself elected as soon as it sees no other, and asks for the lease afterwards",
	Source: "fabric8io/kubernetes-client issue 7350",
	Sites:  locks.OneSite,
	Broken: "two candidates see no leader, and one of them leads beside the other until its lease is refused",
	Expect: []locks.Expectation{{Cause: history.DoubleGrant, Scenario: "contention"}},
	Claims: watchdog.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &earlyLeader{renew(&leaseLock{e.Sites[0]}, e), e}, nil
	},
}

type earlyLeader struct {
	*renewing
	env locks.Env
}

func (l *earlyLeader) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, client := locks.Lease{Key: key, Token: rand.Text()}, l.env.Sites[0]
	switch taken, err := client.Exists(ctx, key).Result(); {
	case err != nil:
		return lease, err
	case taken > 0:
		return lease, locks.ErrBusy
	}
	if crash := l.env.Between(ctx, key); crash != nil {
		return lease, crash
	}
	call := time.Now()
	lease.Until = locks.Until(call, ttl)
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	t := &renewal{lease: lease, ttl: ttl, lost: make(chan struct{}), stop: stop, done: make(chan struct{})}
	l.mu.Lock()
	l.tasks[lease.Token] = t
	l.mu.Unlock()
	go func() {
		defer close(t.done)
		if setNX(ctx, client, key, lease.Token, ttl) != nil {
			close(t.lost)
			return
		}
		l.run(ctx, t, call)
	}()
	lease.Lost = t.lost
	return lease, nil
}
