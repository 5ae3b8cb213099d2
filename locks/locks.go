// Package locks holds the lock algorithms under test, right and wrong ones, one file each. A lock makes one
// try and says what is certain about its outcome; waiting, backing off and judging are for others.
package locks

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

// All lists the locks, the ones to use first.
var All = []Spec{lease, redlock, local, none}

// Spec describes a lock.
type Spec struct {
	Name    string
	Doc     string
	Source  string // where the algorithm is described
	Sites   Sites
	Assumes string // what it needs to be safe
	Broken  string // why it is wrong; empty for a lock that is right within its assumptions
	Claims  history.Claims
	Open    func(Env) (Lock, error)
}

// Find returns the spec with that name.
func Find(name string) (Spec, bool) {
	for _, s := range All {
		if s.Name == name {
			return s, true
		}
	}
	return Spec{}, false
}

// Sites says on how many sites a lock lives.
type Sites int

// The numbers of sites. A lock that needs no server runs anywhere.
const (
	NoSite Sites = iota
	OneSite
	ManySites
)

// Fits tells whether a lock of this kind can live on a topology with n sites.
func (s Sites) Fits(n int) bool { return s != OneSite || n == 1 }

// Env is what a lock is given when it is opened, once for each worker.
type Env struct {
	Sites   []redis.UniversalClient // shared by all workers of the process; the lock must not close them
	Rand    *rand.Rand              // of this worker alone
	Process *Process
	// Renewals is where a lock that renews leases in the background records its extensions, from one goroutine at
	// a time: an Op that names no Hold but the Token. It is nil unless the lock claims Renews.
	Renewals *history.Lane
}

// Process is what the workers of one process share.
type Process struct {
	mutexes sync.Map // of *sync.Mutex by key
}

// Lease is a hold as its holder knows it. It is plain data.
type Lease struct {
	Key   string
	Token string    // marks the hold in the servers; unique
	Fence int64     // fencing token; 0 = the lock has none
	Until time.Time // its holder may believe in it before then; zero = without end
	Count int64     // holds that the owner of a reentrant lock has with this one; 0 = the lock is not reentrant
	// Lost is closed when the lock finds out that the hold is lost or can be relied on no more; nil if it never says.
	Lost <-chan struct{}
}

// Lock is one worker's access to a lock. A worker calls one method at a time.
type Lock interface {
	// Acquire makes one try. ErrBusy says that somebody else holds the lock. After an error whose outcome is
	// Unknown the lease still names the token, so that the hold can be given back if it came about after all.
	Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error)
	// Extend lengthens the lease to ttl from now. ErrLost says that it is no longer ours.
	Extend(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
	// Release gives the hold back. ErrLost says that it was no longer ours.
	Release(ctx context.Context, l Lease) error
	Close() error
}

// Waiter is a lock that can wait better than by polling. Wait returns when a try is worth while after an Acquire
// that was refused, or when ctx is done, and says what made it return; the worker polls no more than it says.
type Waiter interface {
	Wait(ctx context.Context, key string) (history.Wake, error)
}

// ErrBusy and ErrLost say that the call had certainly no effect.
var (
	ErrBusy = errors.New("the lock is held by somebody else")
	ErrLost = errors.New("the lock is no longer ours")
)

// ErrQuorum says that too few sites granted the lock to hold it; what they granted has been given back.
var ErrQuorum = errors.New("no quorum")

// drift is what clocks may differ over a TTL: 1 % and 2 ms, as the Redlock description counts it.
func drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// until is the end of a lease that was asked for at the time of the call: the server's lease began at the
// earliest then.
func until(call time.Time, ttl time.Duration) time.Time { return call.Add(ttl - drift(ttl)) }
