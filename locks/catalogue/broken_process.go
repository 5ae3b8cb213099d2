package catalogue

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

var mutexKept = locks.Spec{
	Name:   "mutex-kept",
	Doc:    "lease behind a mutex of the process, which spares the server all but one of its workers",
	Source: "Spring Integration issues 1888 and 2660, RedisLockRegistry",
	Sites:  locks.OneSite,
	Broken: "a release that finds the lease expired, or fails, returns before it unlocks the mutex: " +
		"no worker of the process gets in again",
	Expect:   []locks.Expectation{{Cause: history.Deadlock}},
	Claims:   lease.Claims,
	Outlives: true,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &mutexKeptLock{leaseLock{e.Sites[0]}, localLock{process: e.Process}}, nil
	},
}

type mutexKeptLock struct {
	leaseLock
	local localLock
}

func (l *mutexKeptLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	if !l.local.mutex(key).TryLock() {
		return locks.Lease{Key: key}, locks.ErrBusy
	}
	lease, err := l.leaseLock.Acquire(ctx, key, ttl)
	if err != nil {
		l.local.mutex(key).Unlock()
	}
	return lease, err
}

func (l *mutexKeptLock) Release(ctx context.Context, lease locks.Lease) error {
	if err := l.leaseLock.Release(ctx, lease); err != nil || lease.Until.IsZero() {
		return err
	}
	l.local.mutex(lease.Key).Unlock()
	return nil
}

var mutexEvicted = locks.Spec{
	Name: "mutex-evicted",
	Doc: "lease of a process, with its name for a token; its workers exclude each other by mutexes, " +
		"of which it keeps the newest 16",
	Source: "Spring Integration issue 11044, RedisLockRegistry.setCacheCapacity",
	Sites:  locks.OneSite,
	Broken: "a mutex that is held is dropped like any other: the next worker locks a new one, " +
		"and the server knows the process already",
	Expect:   []locks.Expectation{{Cause: history.DoubleGrant, Scenario: "late-extension"}},
	Claims:   lease.Claims,
	Outlives: true,
	Queues:   true,
	Open: func(e locks.Env) (locks.Lock, error) {
		r, err := locks.Share(e.Process, registryKey{}, func() (*registry, error) {
			return &registry{id: rand.Text(), mutexes: map[string]*sync.Mutex{}}, nil
		})
		return &mutexEvictedLock{leaseLock{e.Sites[0]}, e.Process, r, map[string]*sync.Mutex{}}, err
	},
}

// registry has the mutexes of a process, at most 16. A new mutex replaces the oldest one, even if that is locked.
type registry struct {
	id      string
	mu      sync.Mutex
	newest  [16]string // the keys of the mutexes
	next    int
	mutexes map[string]*sync.Mutex
}

type registryKey struct{}

func (*registry) Close() error { return nil }

func (r *registry) mutex(key string) *sync.Mutex {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, ok := r.mutexes[key]
	if !ok {
		m = &sync.Mutex{}
		delete(r.mutexes, r.newest[r.next])
		r.newest[r.next], r.mutexes[key] = key, m
		r.next = (r.next + 1) % len(r.newest)
	}
	return m
}

type mutexEvictedLock struct {
	leaseLock
	process  *locks.Process
	registry *registry
	held     map[string]*sync.Mutex // by key
}

// obtain takes the lock if it is free. It also returns 1 if the lock has the caller's token already.
var obtain = redis.NewScript(`
local held = redis.call("GET", KEYS[1])
if held and held ~= ARGV[1] then return 0 end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return 1`)

func (l *mutexEvictedLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: l.registry.id}
	m := l.registry.mutex(key)
	if !m.TryLock() {
		return lease, locks.ErrBusy
	}
	call := time.Now()
	err := granted(obtain.Run(ctx, l.client, []string{key}, lease.Token, ttl.Milliseconds()).Int64())
	if err == locks.ErrBusy {
		m.Unlock()
		return lease, err
	}
	// After any other error the lock may have been granted, so the mutex stays locked until the release.
	l.held[key] = m
	return from(lease, call, ttl, err)
}

func (l *mutexEvictedLock) Release(ctx context.Context, lease locks.Lease) error {
	if m, ok := l.held[lease.Key]; ok {
		delete(l.held, lease.Key)
		defer m.Unlock()
	}
	return l.leaseLock.Release(ctx, lease)
}

func (l *mutexEvictedLock) Close() error { return l.process.Drop(registryKey{}) }

var localReentry = locks.Spec{
	Name:   "local-reentry",
	Doc:    "lease that counts its holder's re-entries in the client",
	Source: "wrappers that make a lease reentrant with a thread-local counter",
	Sites:  locks.OneSite,
	Broken: "a re-entry is granted from the counter even when the lease has long been another's",
	Expect: []locks.Expectation{{Cause: history.SilentReacquire}, {Cause: history.FalseExtension}},
	Claims: reentrant.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &localReentryLock{leaseLock{e.Sites[0]}, map[string]locks.Lease{}}, nil
	},
}

type localReentryLock struct {
	leaseLock
	held map[string]locks.Lease // by key
}

func (l *localReentryLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, inside := l.held[key]
	if !inside {
		var err error
		if lease, err = l.leaseLock.Acquire(ctx, key, ttl); err != nil {
			return lease, err
		}
	} else {
		lease.Until = locks.Until(time.Now(), ttl)
	}
	lease.Count++
	l.held[key] = lease
	return lease, nil
}

func (l *localReentryLock) Release(ctx context.Context, lease locks.Lease) error {
	if lease.Count > 1 {
		lease.Count--
		l.held[lease.Key] = lease
		return nil
	}
	delete(l.held, lease.Key)
	return l.leaseLock.Release(ctx, lease)
}

var reentryRetakes = locks.Spec{
	Name: "reentry-retakes",
	Doc: "reentrant lease: the server is asked each time, and lets in whose token it has, " +
		"or any worker if it has none",
	Source: "go-zero redislock; its pull requests 1704 and 4319 on what a second Acquire means",
	Sites:  locks.OneSite,
	Broken: "a re-entry whose outer hold has expired takes the lock anew: another worker may have had it meanwhile, " +
		"and the outer hold goes on",
	Expect: []locks.Expectation{{Cause: history.SilentReacquire}},
	Claims: reentrant.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &retakesLock{localReentryLock{leaseLock{e.Sites[0]}, map[string]locks.Lease{}}}, nil
	},
}

type retakesLock struct{ localReentryLock }

// Acquire is broken: the script obtain returns 1 both for a free lock and for one with the caller's token. So
// Acquire cannot tell whether a re-entry has lost its outer hold.
func (l *retakesLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, inside := l.held[key]
	if !inside {
		lease = locks.Lease{Key: key, Token: rand.Text()}
	}
	lease.Count++
	call := time.Now()
	err := granted(obtain.Run(ctx, l.client, []string{key}, lease.Token, ttl.Milliseconds()).Int64())
	lease, err = from(lease, call, ttl, err)
	if err == nil {
		l.held[key] = lease
	}
	return lease, err
}

var turnKept = locks.Spec{
	Name:   "turn-kept",
	Doc:    "lease behind a semaphore with one place, in each client: its threads take turns",
	Source: "clients that guard one connection by a semaphore",
	Sites:  locks.OneSite,
	Broken: "a try that ends in an error does not give its turn back: the next call of the client " +
		"waits for it for ever",
	Expect: []locks.Expectation{{Cause: history.HungCall, Scenario: "cancelled"}},
	Claims: lease.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		return &turnKeptLock{leaseLock{e.Sites[0]}, make(chan struct{}, 1)}, nil
	},
}

type turnKeptLock struct {
	leaseLock
	turn chan struct{}
}

func (l *turnKeptLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	l.turn <- struct{}{}
	lease, err := l.leaseLock.Acquire(ctx, key, ttl)
	if err == nil || err == locks.ErrBusy {
		<-l.turn
	}
	return lease, err
}

var trustsReplies = locks.Spec{
	Name:   "trusts-replies",
	Doc:    "lease whose release looks at the reply before it looks at the error",
	Source: "handlers that take it for granted that a server answers",
	Sites:  locks.OneSite,
	Broken: "a server that does not answer in time makes it panic",
	Expect: []locks.Expectation{{Cause: history.Panicked, Scenario: "server-hangs"}, {Cause: history.Panicked}},
	Claims: lease.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return &trustsRepliesLock{leaseLock{e.Sites[0]}}, nil },
}

type trustsRepliesLock struct{ leaseLock }

func (l *trustsRepliesLock) Release(ctx context.Context, lease locks.Lease) error {
	reply, err := compareAndDelete.Run(ctx, l.client, []string{lease.Key}, lease.Token).Result()
	return owned(reply.(int64), err)
}
