package locks

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var mutexEvicted = Spec{
	Name:     "mutex-evicted",
	Doc:      "lease of a process, with its name for a token; its workers exclude each other by mutexes, of which it keeps the newest 16",
	Source:   "Spring Integration issue 11044, RedisLockRegistry.setCacheCapacity",
	Sites:    OneSite,
	Broken:   "a mutex that is held is dropped like any other: the next worker locks a new one, and the server knows the process already",
	Expect:   []Expectation{{Cause: history.DoubleGrant, Scenario: "late-extension"}},
	Claims:   lease.Claims,
	Outlives: true,
	Queues:   true,
	Open: func(e Env) (Lock, error) {
		r, err := Share(e.Process, registryKey{}, func() (*registry, error) {
			return &registry{id: rand.Text(), mutexes: map[string]*sync.Mutex{}}, nil
		})
		return &mutexEvictedLock{leaseLock{e.Sites[0]}, e.Process, r, map[string]*sync.Mutex{}}, err
	},
}

// registry is what a process keeps of its locks.
type registry struct {
	id      string
	mu      sync.Mutex
	newest  [16]string // keys
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
	process  *Process
	registry *registry
	held     map[string]*sync.Mutex // by key
}

// obtain answers 1 also to whoever has the lock already.
var obtain = redis.NewScript(`
local held = redis.call("GET", KEYS[1])
if held and held ~= ARGV[1] then return 0 end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return 1`)

func (l *mutexEvictedLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease := Lease{Key: key, Token: l.registry.id}
	m := l.registry.mutex(key)
	if !m.TryLock() {
		return lease, ErrBusy
	}
	call := time.Now()
	err := granted(obtain.Run(ctx, l.client, []string{key}, lease.Token, ttl.Milliseconds()).Int64())
	if err == ErrBusy {
		m.Unlock()
		return lease, err
	}
	l.held[key] = m // after another error until it is given back
	return lease.from(call, ttl, err)
}

func (l *mutexEvictedLock) Release(ctx context.Context, lease Lease) error {
	if m, ok := l.held[lease.Key]; ok {
		delete(l.held, lease.Key)
		defer m.Unlock()
	}
	return l.leaseLock.Release(ctx, lease)
}

func (l *mutexEvictedLock) Close() error { return l.process.Drop(registryKey{}) }
