package catalogue

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var refusalKept = locks.Spec{
	Name:   "refusal-kept",
	Doc:    "lease whose client begins to watch over it before it asks, and stops when it gives it back",
	Source: "watchdogs that are started before the lock is granted",
	Sites:  locks.OneSite,
	Broken: "a try that is refused does not end its watcher: a goroutine is left for each",
	Expect: []locks.Expectation{{Cause: history.ClientLeak, Scenario: "wear"}},
	Claims: lease.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &refusalKeptLock{leaseLock{e.Sites[0]}, map[string]chan struct{}{}, make(chan struct{})}, nil
	},
}

type refusalKeptLock struct {
	leaseLock
	stops  map[string]chan struct{} // by token
	closed chan struct{}
}

func (l *refusalKeptLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	stop := make(chan struct{})
	go func() {
		select {
		case <-stop:
		case <-l.closed:
		}
	}()
	lease, err := l.leaseLock.Acquire(ctx, key, ttl)
	l.stops[lease.Token] = stop
	if err == locks.ErrBusy {
		delete(l.stops, lease.Token)
	}
	return lease, err
}

func (l *refusalKeptLock) Release(ctx context.Context, lease locks.Lease) error {
	if stop, ok := l.stops[lease.Token]; ok {
		delete(l.stops, lease.Token)
		close(stop)
	}
	return l.leaseLock.Release(ctx, lease)
}

func (l *refusalKeptLock) Close() error {
	close(l.closed)
	return nil
}

var listenerKept = locks.Spec{
	Name:   "listener-kept",
	Doc:    "watchdog that listens for messages about its hold, on a connection of each hold",
	Source: "watchdogs that can be stopped from outside",
	Sites:  locks.OneSite,
	Broken: "the release of a hold that was lost returns before it closes the connection",
	Expect: []locks.Expectation{{Cause: history.ClientLeak, Scenario: "wear-renewals"}},
	Claims: watchdog.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &listenerKeptLock{renew(&leaseLock{e.Sites[0]}, e), e.Sites[0], map[string]*redis.PubSub{}}, nil
	},
}

type listenerKeptLock struct {
	*renewing
	client    redis.UniversalClient
	listeners map[string]*redis.PubSub // by token
}

func (l *listenerKeptLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := l.renewing.Acquire(ctx, key, ttl)
	if err == nil {
		l.listeners[lease.Token] = l.client.Subscribe(ctx, sibling("stop", key))
	}
	return lease, err
}

func (l *listenerKeptLock) Release(ctx context.Context, lease locks.Lease) error {
	select {
	case <-lease.Lost:
		return l.renewing.Release(ctx, lease)
	default:
	}
	listener, ok := l.listeners[lease.Token]
	if ok {
		delete(l.listeners, lease.Token)
		_ = listener.Close() // an error does not matter: closing loses no message
	}
	return l.renewing.Release(ctx, lease)
}

func (l *listenerKeptLock) Close() error {
	for _, listener := range l.listeners {
		_ = listener.Close()
	}
	return l.renewing.Close()
}
