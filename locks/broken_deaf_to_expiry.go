package locks

import (
	"context"
	"time"

	"hammerlock/history"
)

var deafToExpiry = Spec{
	Name:   "deaf-to-expiry",
	Doc:    "lease whose release publishes a message; waiters look once when they have subscribed and then wait for it",
	Source: "Spring Integration pull requests 3691 and 3702; python-redis-lock pull request 18",
	Sites:  OneSite,
	Broken: "no message says that a lease has expired: when a holder dies, those who wait sleep on beside a free lock",
	Expect: []Expectation{{Cause: history.LostWakeup}},
	Claims: lease.Claims,
	Open: func(e Env) (Lock, error) {
		return openNotifying(e, func(ctx context.Context, l *notifyingLock) (time.Duration, history.Wake, error) {
			held, err := l.leaseLock.client.Exists(ctx, l.key).Result()
			if err != nil || held == 0 {
				return gone, history.Poll, err
			}
			return -1, history.Poll, nil
		}), nil
	},
}
