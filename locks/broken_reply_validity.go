package locks

import (
	"context"
	"time"

	"hammerlock/history"
)

var replyValidity = Spec{
	Name:   "reply-validity",
	Doc:    "lease, believed in for the whole TTL from the reply on",
	Source: "clients that note time.Now() after the call returns",
	Sites:  OneSite,
	Broken: "the server's lease began before the reply: its holder believes too long, by the reply's delay and the drift",
	Expect: []Expectation{{Cause: history.OverClaim}},
	Claims: lease.Claims,
	Open:   func(e Env) (Lock, error) { return &replyValidityLock{leaseLock{e.Sites[0]}}, nil },
}

type replyValidityLock struct{ leaseLock }

func (l *replyValidityLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease, err := l.leaseLock.Acquire(ctx, key, ttl)
	if err == nil {
		lease.Until = time.Now().Add(ttl)
	}
	return lease, err
}

func (l *replyValidityLock) Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	lease, err := l.leaseLock.Extend(ctx, lease, ttl)
	if err == nil {
		lease.Until = time.Now().Add(ttl)
	}
	return lease, err
}
