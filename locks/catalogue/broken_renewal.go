package catalogue

import (
	"context"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

var blindWatchdog = locks.Spec{
	Name:   "blind-watchdog",
	Doc:    "lease with a watchdog that sends PEXPIRE without asking whose lock it is",
	Source: "watchdogs written as a ticker and an EXPIRE",
	Sites:  locks.OneSite,
	Broken: "a holder that has lost its lock goes on prolonging its successor's, and believes that it is its own",
	Expect: []locks.Expectation{{Cause: history.FalseExtension}, {Cause: history.SilentReacquire}},
	Claims: watchdog.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return renewBlindly(&blindLock{leaseLock{e.Sites[0]}}, e), nil },
}

// renewBlindly returns a watchdog that goes on renewing after the lease has ended by the holder's clock.
func renewBlindly(l locks.Lock, e locks.Env) *renewing {
	r := renew(l, e)
	r.trusting = true
	return r
}

type blindLock struct{ leaseLock }

func (l *blindLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	there, err := l.client.PExpire(ctx, lease.Key, ttl).Result()
	if err == nil && !there {
		err = locks.ErrLost
	}
	return from(lease, call, ttl, err)
}

var watchdogByName = locks.Spec{
	Name:   "watchdog-by-name",
	Doc:    "watchdog, but a process keeps its renewal tasks by the lock's name",
	Source: "maps from lock name to timer, as in early versions of Redisson",
	Sites:  locks.OneSite,
	Broken: "who takes the lock while its last holder's task still stands gets no renewals: " +
		"the task ends with the other hold",
	Expect: []locks.Expectation{{Cause: history.RenewalFailure, Scenario: "renewal"}},
	Claims: watchdog.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &byNameLock{renewing: renew(&leaseLock{e.Sites[0]}, e), env: e}, nil
	},
}

type byNameLock struct {
	*renewing
	env locks.Env
}

// nameKey is the key under which a process keeps the renewal of a lock.
type nameKey string

func (l *byNameLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	lease, err := l.Lock.Acquire(ctx, key, ttl)
	if err != nil {
		return lease, err
	}
	if _, running := l.env.Process.Kept.Load(nameKey(key)); !running {
		t := l.start(ctx, lease, call, ttl)
		l.tasks[key] = t
		l.env.Process.Kept.Store(nameKey(key), t)
		lease.Lost = t.lost
	}
	return lease, nil
}

// Release is broken: it releases the lock before it stops the renewal. It finds the renewal by the lock's name, so
// it may stop that of the next holder.
func (l *byNameLock) Release(ctx context.Context, lease locks.Lease) error {
	err := l.Lock.Release(ctx, lease)
	if crash := l.env.Between(ctx, lease.Key); crash != nil {
		return crash
	}
	l.env.Process.Kept.Delete(nameKey(lease.Key))
	if t, ok := l.tasks[lease.Key]; ok {
		delete(l.tasks, lease.Key)
		t.end()
	}
	return err
}

func (l *byNameLock) Close() error {
	for key := range l.tasks {
		l.env.Process.Kept.Delete(nameKey(key))
	}
	return l.renewing.Close()
}

var renewRecreates = locks.Spec{
	Name:   "renew-recreates",
	Doc:    "lease with a watchdog that sets the key again when it is gone",
	Source: "redsync, WithSetNXOnExtend",
	Sites:  locks.OneSite,
	Broken: "a hold that is over comes back to life: another worker may have had the lock meanwhile, " +
		"and no holder hears of it",
	Expect: []locks.Expectation{{Cause: history.SilentReacquire, Scenario: "renewal-hangs"},
		{Cause: history.SilentReacquire, Scenario: "comeback"}},
	Claims: watchdog.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return renewBlindly(&recreateLock{leaseLock{e.Sites[0]}}, e), nil
	},
}

type recreateLock struct{ leaseLock }

func (l *recreateLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	err := owned(obtain.Run(ctx, l.client, []string{lease.Key}, lease.Token, ttl.Milliseconds()).Int64())
	return from(lease, call, ttl, err)
}

var lateBelief = locks.Spec{
	Name:   "late-belief",
	Doc:    "watchdog, but an extension counts from when it was sent, answered or not",
	Source: "watchdogs that move the deadline first and ask afterwards",
	Sites:  locks.OneSite,
	Broken: "an extension that was never acknowledged may not have happened: its holder believes in it all the same",
	Expect: []locks.Expectation{{Cause: history.RenewalFailure}, {Cause: history.OverClaim}},
	Claims: watchdog.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return renew(&lateBeliefLock{leaseLock{e.Sites[0]}}, e), nil },
}

type lateBeliefLock struct{ leaseLock }

// Extend is broken: if the outcome is unknown, it sets Until to the new deadline.
func (l *lateBeliefLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	_, err := l.leaseLock.Extend(ctx, lease, ttl)
	if outcome, _ := locks.Classify(err); outcome != history.Failed {
		lease.Until = locks.Until(call, ttl)
	}
	return lease, err
}

var renewalDies = locks.Spec{
	Name:   "renewal-dies",
	Doc:    "watchdog as a loop that extends and sleeps; it ends when the lock is lost, and says so",
	Source: "Redisson issue 775; Artemis (CERT-Polska) pull request 2371, the heartbeat of its locks",
	Sites:  locks.OneSite,
	Broken: "it also ends, without a word, at the first error: the lease runs out under a holder that relies on it",
	Expect: []locks.Expectation{{Cause: history.RenewalFailure, Scenario: "renewal-hangs"},
		{Cause: history.RenewalFailure, Scenario: "renewal-cut"}},
	Claims: watchdog.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &fragileLock{renewBlindly(&leaseLock{e.Sites[0]}, e)}, nil
	},
}

type fragileLock struct{ *renewing }

func (l *fragileLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := l.Lock.Acquire(ctx, key, ttl)
	if err != nil {
		return lease, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	t := &renewal{lease: lease, ttl: ttl, lost: make(chan struct{}), stop: stop, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		l.loop(ctx, t)
	}()
	l.tasks[lease.Token] = t
	lease.Lost = t.lost
	return lease, nil
}

func (l *fragileLock) loop(ctx context.Context, t *renewal) {
	ticker := time.NewTicker(t.ttl / renewShare)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		outcome, reason := l.once(ctx, t)
		if reason == history.Lost && ctx.Err() == nil {
			close(t.lost)
		}
		if outcome != history.OK {
			return
		}
	}
}

var stopAfterRelease = locks.Spec{
	Name:   "stop-after-release",
	Doc:    "watchdog that is stopped when the lock has been released",
	Source: "Redisson issues 4232 and 1626",
	Sites:  locks.OneSite,
	Broken: "after a release that failed the watchdog goes on: the lock that its holder has left is renewed as " +
		"long as the process lives",
	Expect: []locks.Expectation{{Cause: history.Deadlock}, {Cause: history.Stuck}},
	Claims: watchdog.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return &stopAfterLock{renew(&leaseLock{e.Sites[0]}, e)}, nil },
}

type stopAfterLock struct{ *renewing }

func (l *stopAfterLock) Release(ctx context.Context, lease locks.Lease) error {
	if err := l.Lock.Release(ctx, lease); err != nil {
		return err
	}
	if t, ok := l.tasks[lease.Token]; ok {
		delete(l.tasks, lease.Token)
		t.end()
	}
	return nil
}

var extendAdds = locks.Spec{
	Name:   "extend-adds",
	Doc:    "lease with a watchdog that adds a lease to what is left of the last one",
	Source: "redis-py pull request 1303, Lock.extend without replace_ttl",
	Sites:  locks.OneSite,
	Broken: "the lease grows with each renewal: when its holder dies after a while the lock stays for many leases",
	Expect: []locks.Expectation{{Cause: history.TTLTooLong}},
	Claims: watchdog.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return renew(&extendAddsLock{leaseLock{e.Sites[0]}}, e), nil },
}

type extendAddsLock struct{ leaseLock }

var compareAndAdd = newOwnedScript(`
if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call("PEXPIRE", KEYS[1], redis.call("PTTL", KEYS[1]) + ARGV[2])`)

func (l *extendAddsLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	s := compareAndAdd
	call := time.Now()
	err := s.run(ctx, l.client, []any{"evalsha", s.digest, 1, lease.Key, lease.Token, ttl.Milliseconds()})
	return from(lease, call, ttl, err)
}

var stopByMessage = locks.Spec{
	Name:   "stop-by-message",
	Doc:    "watchdog that a release ends by a message, which it hands over through a channel without a buffer",
	Source: "watchdogs as a select over a ticker and a stop channel",
	Sites:  locks.OneSite,
	Broken: "a watchdog that has lost the lease has ended, and takes no message: the release waits for ever",
	Expect: []locks.Expectation{{Cause: history.HungCall, Scenario: "renewal-hangs"},
		{Cause: history.HungCall, Scenario: "renewal-cut"}},
	Claims: watchdog.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &stopByMessageLock{renewing: renew(&leaseLock{e.Sites[0]}, e), stops: map[string]chan struct{}{}}, nil
	},
}

type stopByMessageLock struct {
	*renewing
	stops map[string]chan struct{} // by token
}

func (l *stopByMessageLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := l.renewing.Acquire(ctx, key, ttl)
	if err != nil {
		return lease, err
	}
	t, stop := l.tasks[lease.Token], make(chan struct{})
	l.stops[lease.Token] = stop
	go func() {
		select {
		case <-stop:
			t.stop()
		case <-t.done:
		}
	}()
	return lease, nil
}

func (l *stopByMessageLock) Release(ctx context.Context, lease locks.Lease) error {
	if stop, ok := l.stops[lease.Token]; ok {
		delete(l.stops, lease.Token)
		stop <- struct{}{}
	}
	return l.renewing.Release(ctx, lease)
}
