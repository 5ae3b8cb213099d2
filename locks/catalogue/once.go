package catalogue

import (
	"context"

	"hammerlock/history"
	"hammerlock/locks"
)

// onceClaims are the claims of a lock for a scheduled job: at each tick of the schedule only one worker runs the
// job.
var onceClaims = history.Claims{Excludes: true, Expires: true, Once: true}

var once = locks.Spec{
	Name: "once",
	Doc: "a job runs once a tick: SET NX PX of a key that names the tick, with a lease longer than clocks differ; " +
		"it is not deleted",
	Source:  "Laravel, task scheduling: onOneServer; sidekiq-scheduler: registered jobs",
	Sites:   locks.OneSite,
	Assumes: keepsKeys + "clocks differ by less than the lease",
	Expect:  []locks.Expectation{{Cause: history.ServiceLoss, Fault: "restart-empty"}},
	Claims:  onceClaims,
	Shared:  true,
	Open:    func(e locks.Env) (locks.Lock, error) { return &onceLock{leaseLock{e.Sites[0]}}, nil },
}

type onceLock struct{ leaseLock }

// Release does nothing: even if the job is done, the key must stay until the slowest clock has reached the tick.
func (l *onceLock) Release(context.Context, locks.Lease) error { return nil }

var onceReleased = locks.Spec{
	Name:   "once-released",
	Doc:    "lease with a key a tick, given back when the job is done",
	Source: "node-cron, pull request 549, and schedulers that wrap a job in a lock",
	Sites:  locks.OneSite,
	Broken: "a job that is shorter than clocks differ runs once more on a machine whose clock is late",
	Expect: []locks.Expectation{{Cause: history.RunTwice, Scenario: "ticks"}},
	Claims: onceClaims,
	Open:   lease.Open,
}
