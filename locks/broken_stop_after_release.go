package locks

import (
	"context"

	"hammerlock/history"
)

var stopAfterRelease = Spec{
	Name:   "stop-after-release",
	Doc:    "watchdog that is stopped when the lock has been released",
	Source: "Redisson issues 4232 and 1626",
	Sites:  OneSite,
	Broken: "after a release that failed the watchdog goes on: the lock that its holder has left is renewed as long as the process lives",
	Expect: []Expectation{{Cause: history.Deadlock}, {Cause: history.Stuck}},
	Claims: watchdog.Claims,
	Open:   func(e Env) (Lock, error) { return &stopAfterLock{renew(&leaseLock{e.Sites[0]}, e)}, nil },
}

type stopAfterLock struct{ *renewing }

func (l *stopAfterLock) Release(ctx context.Context, lease Lease) error {
	if err := l.Lock.Release(ctx, lease); err != nil {
		return err
	}
	if t, ok := l.tasks[lease.Token]; ok {
		delete(l.tasks, lease.Token)
		t.end()
	}
	return nil
}
