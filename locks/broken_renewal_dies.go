package locks

import (
	"context"
	"time"

	"hammerlock/history"
)

var renewalDies = Spec{
	Name:   "renewal-dies",
	Doc:    "watchdog as a loop that extends and sleeps; it ends when the lock is lost, and says so",
	Source: "Redisson issue 775; Artemis (CERT-Polska) pull request 2371, the heartbeat of its locks",
	Sites:  OneSite,
	Broken: "it also ends, without a word, at the first error: the lease runs out under a holder that relies on it",
	Expect: []Expectation{{Cause: history.Overrun, Scenario: "renewal-hangs"}, {Cause: history.Overrun, Scenario: "renewal-cut"}},
	Claims: watchdog.Claims,
	Open:   func(e Env) (Lock, error) { return &fragileLock{renewBlindly(&leaseLock{e.Sites[0]}, e)}, nil },
}

type fragileLock struct{ *renewing }

func (l *fragileLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
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
