package locks

import (
	"context"
	"sync"
	"time"

	"hammerlock/history"
)

var keptToken = Spec{
	Name:   "kept-token",
	Doc:    "lease as one object, which several workers may use; it remembers the token of its last grant",
	Source: "redis-py, documentation of Lock: what thread_local is for",
	Sites:  OneSite,
	Broken: "the object has one token: who is granted a lock while another worker holds one gives back with the wrong token from then on",
	Expect: []Expectation{{Cause: history.PrematureLoss, Scenario: "shared-object"}, {Cause: history.ForeignRelease, Scenario: "shared-object"}},
	Claims: lease.Claims,
	Shared: true,
	Open: func(e Env) (Lock, error) {
		return &keptTokenLock{leaseLock: leaseLock{e.Sites[0]}, tokens: &sync.Map{}}, nil
	},
}

// keptTokenLock is an object that remembers the token of its last grant, or of that of each key.
type keptTokenLock struct {
	leaseLock
	tokens *sync.Map // by key, or all under ""
	byKey  bool
}

func (l *keptTokenLock) name(key string) string {
	if l.byKey {
		return key
	}
	return ""
}

func (l *keptTokenLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease, err := l.leaseLock.Acquire(ctx, key, ttl)
	if err == nil {
		l.tokens.Store(l.name(key), lease.Token)
	}
	return lease, err
}

func (l *keptTokenLock) Extend(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error) {
	extended, err := l.leaseLock.Extend(ctx, l.own(lease), ttl)
	lease.Until = extended.Until
	return lease, err
}

func (l *keptTokenLock) Release(ctx context.Context, lease Lease) error {
	return l.leaseLock.Release(ctx, l.own(lease))
}

// own is the lease with the token that the object remembers, if it was granted.
func (l *keptTokenLock) own(lease Lease) Lease {
	if token, ok := l.tokens.Load(l.name(lease.Key)); ok && !lease.Until.IsZero() {
		lease.Token = token.(string)
	}
	return lease
}
