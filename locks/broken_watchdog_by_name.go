package locks

import (
	"context"
	"time"

	"hammerlock/history"
)

var watchdogByName = Spec{
	Name:   "watchdog-by-name",
	Doc:    "watchdog, but a process keeps its renewal tasks by the lock's name",
	Source: "maps from lock name to timer, as in early versions of Redisson",
	Sites:  OneSite,
	Broken: "who takes the lock while its last holder's task still stands gets no renewals: the task ends with the other hold",
	Expect: []Expectation{{Cause: history.RenewalFailure, Scenario: "renewal"}},
	Claims: watchdog.Claims,
	Open:   func(e Env) (Lock, error) { return &byNameLock{renewing: renew(&leaseLock{e.Sites[0]}, e), env: e}, nil },
}

type byNameLock struct {
	*renewing
	env Env
}

func (l *byNameLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	call := time.Now()
	lease, err := l.Lock.Acquire(ctx, key, ttl)
	if err != nil {
		return lease, err
	}
	if _, running := l.env.Process.renewed.Load(key); !running {
		t := l.start(ctx, lease, call, ttl)
		l.tasks[key] = t
		l.env.Process.renewed.Store(key, t)
		lease.Lost = t.lost
	}
	return lease, nil
}

// Release gives the lock back first and looks for the task of that name afterwards.
func (l *byNameLock) Release(ctx context.Context, lease Lease) error {
	err := l.Lock.Release(ctx, lease)
	if crash := l.env.between(ctx, lease.Key); crash != nil {
		return crash
	}
	l.env.Process.renewed.Delete(lease.Key)
	if t, ok := l.tasks[lease.Key]; ok {
		delete(l.tasks, lease.Key)
		t.end()
	}
	return err
}

func (l *byNameLock) Close() error {
	for key := range l.tasks {
		l.env.Process.renewed.Delete(key)
	}
	return l.renewing.Close()
}
