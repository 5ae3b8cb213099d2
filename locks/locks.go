// Package locks defines a lock under test: its Spec, its methods, its environment and the meaning of its errors. A
// lock makes one try and reports what is certain about the outcome; workers wait and back off. The suite's own locks
// are in locks/catalogue.
package locks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/mod/semver"

	"hammerlock/history"
	"hammerlock/topologies"
)

// Spec describes a lock.
type Spec struct {
	Name    string
	Doc     string
	Source  string // where the algorithm is described
	Library bool   // a published library, used as its users use it
	Sites   Sites
	Engine  string // engine of the servers, as package topologies names it; empty = Redis
	Assumes string // assumptions under which the lock is safe
	Broken  string // why it is wrong; empty for a lock that is correct under its assumptions
	Expect  []Expectation
	Needs   []Release // server versions that have the lock's commands; any one of them is enough; empty = all have them
	Claims  history.Claims
	// Counting is the way in which a visit counts. All values but TwoSteps are baselines, which use no lock.
	Counting Counting
	Listens  bool // waiters subscribe to channels
	// Outlives means that the lock stays held when its worker dies, until the process ends. For example, a library
	// renews the lock as long as the process lives, or a mutex of the process is held.
	Outlives bool
	// Linger returns the time by which a lease may outlast its ttl, if its holder knows this or is gone; nil = not at
	// all.
	Linger func(ttl time.Duration) time.Duration
	// Session means that a hold ends with the connection on which it was granted.
	Session bool
	// Waits means that Acquire itself waits: Open returns a Patient.
	Waits bool
	// Shared means that several workers may use one lock object concurrently.
	Shared bool
	// Queues means that workers of a process wait for a mutex while the worker that holds the mutex waits for the
	// server.
	Queues bool
	Open   func(Env) (Lock, error)
	// Defaults means that the clients use database 0 and the default user; they cannot select others.
	Defaults bool
	// Program is the external program that runs the lock; Open is nil then. Nil = the lock is part of this program.
	Program *Program
}

// Counting is the way in which a visit adds its page view to the counter.
type Counting int

// The ways to count.
const (
	TwoSteps   Counting = iota // load, wait, store; a lock must guard these steps
	OneStep                    // one atomic increment
	Optimistic                 // a store that fails, and is repeated, if another worker has stored since the load
	Elsewhere                  // a request to a service that does its own locking
)

// Expectation is a failure that verify must find, and the run that shows it. A broken lock must show one of its
// causes. A correct lock must pass all other scenarios, except those whose fault breaks its assumptions.
type Expectation struct {
	Cause    string // name of the cause in package history
	Scenario string // scenario that shows it; empty for a broken lock = several scenarios do
	Fault    string // for a correct lock: the fault that shows it, in the syntax of the command line
	// Sometimes means that a correct lock shows the cause in some runs only, so a pass is accepted too.
	Sometimes bool
}

// Expected lists the causes that the lock must show under a fault. With an empty fault it lists the causes of a
// broken lock.
func (s Spec) Expected(fault string) (causes []string) {
	for _, e := range s.Expect {
		if e.Fault == fault && !slices.Contains(causes, e.Cause) {
			causes = append(causes, e.Cause)
		}
	}
	return causes
}

// Shows tells whether the lock is expected to fail in a scenario.
func (s Spec) Shows(scenario string) bool {
	return slices.ContainsFunc(s.Expect, func(e Expectation) bool { return e.Scenario == scenario })
}

// Release is a server program, from the version Since on.
type Release struct {
	Name  string // as the program reports it
	Since string // major.minor
}

// Runs returns nil if the server has the lock's commands, or if its version is unknown. Otherwise it returns an
// ErrServer that names the server's version and the versions that have the commands.
func (s Spec) Runs(server topologies.Server) error {
	if len(s.Needs) == 0 || server == (topologies.Server{}) {
		return nil
	}
	var wants []string
	for _, r := range s.Needs {
		if r.Name == server.Name && semver.Compare("v"+server.Version, "v"+r.Since) >= 0 {
			return nil
		}
		wants = append(wants, r.Name+" "+r.Since)
	}
	return fmt.Errorf("%w: %s needs %s or newer, this is %s", ErrServer, s.Name, strings.Join(wants, ", "), server)
}

// Offers returns an error if the lock lacks a method that the Spec promises; the error names the method.
func (s Spec) Offers(l Lock) error {
	_, shares := l.(Sharer)
	_, upgrades := l.(Upgrader)
	_, waits := l.(Patient)
	_, several := l.(Several)
	switch {
	case s.Waits && !waits:
		return fmt.Errorf("%s waits inside Acquire, and has no AcquireWithin", s.Name)
	case (s.Claims.Readers || s.Claims.Permits > 0) && !shares:
		return fmt.Errorf("%s claims readers or permits, and has no AcquireShare", s.Name)
	case s.Claims.Sets && !several:
		return fmt.Errorf("%s claims sets, and has no AcquireAll", s.Name)
	case s.Claims.Upgrades && !upgrades:
		return fmt.Errorf("%s claims upgrades, and has no Upgrade", s.Name)
	}
	return nil
}

// Lingers returns the time by which a lease may outlast its ttl.
func (s Spec) Lingers(ttl time.Duration) time.Duration {
	if s.Linger == nil {
		return 0
	}
	return s.Linger(ttl)
}

// Auto returns the lock for a topology: the first correct lock of the list that fits the topology and uses all of its
// sites.
func Auto(all []Spec, t topologies.Spec) Spec {
	sites := OneSite
	if t.Sites > 1 {
		sites = ManySites
	}
	for _, s := range all {
		if s.Sites == sites && s.Broken == "" && s.Fits(t) {
			return s
		}
	}
	return Spec{}
}

// Sites says how many sites a lock needs.
type Sites int

const (
	NoSite Sites = iota
	OneSite
	ManySites
)

// Fits tells whether a lock with these needs can run on a topology with n sites.
func (s Sites) Fits(n int) bool { return s != OneSite || n == 1 }

// Env is what Open needs. Each worker has its own.
type Env struct {
	// Sites are Redis clients, one for each site. All workers of the process share them, and the lock must not close
	// them. For servers other than Redis use Places.
	Sites   []redis.UniversalClient
	Rand    *rand.Rand // used by this worker only
	Process *Process
	// Renewals is for a lock that renews leases in the background. The lock records its extensions there, from one
	// goroutine at a time; each Op names the Token, not the Hold, and has the key -1. It is nil unless the lock claims
	// Renews. See docs/OWN.md.
	Renewals *history.Lane
	// Places are the sites that Sites connect to, in the same order. Libraries with their own connections use them.
	Places []*topologies.Site
	// Source is the number by which proxies identify the clients of this process, for libraries with their own
	// connections; 0 = none.
	Source int
	// Server is the program at the sites; the zero Server = unknown.
	Server topologies.Server
	// Within is the prefix of all keys and channels on attached servers; empty = the lock chooses its own names. Keys
	// that the lock receives begin with this prefix.
	Within string
	// Pause is called by a broken lock between two commands that a correct lock would send as one. A fault can stop
	// or kill the worker there. If it returns an error, the call must end without undoing anything. Nil = no fault
	// uses it.
	Pause func(ctx context.Context, key string) error
}

func (e Env) Between(ctx context.Context, key string) error {
	if e.Pause == nil {
		return nil
	}
	return e.Pause(ctx, key)
}

// Process is what the workers of a process share. Its zero value is ready to use.
type Process struct {
	Kept sync.Map // values that locks keep until the process ends; the keys have types of their own

	mu     sync.Mutex
	shared map[any]*shared
}

// Lease is a granted lock, as its holder sees it. It is plain data.
type Lease struct {
	Key string
	// Keys lists all keys of a lock on several keys, in the order of the request; nil = only Key.
	Keys  []string
	Token string    // identifies the hold on the servers; unique
	Fence int64     // fencing token; 0 = the lock has none
	Until time.Time // the holder may rely on the lock until then; zero = the lease does not end
	// Permits is the number of permits; a reader has 1; 0 = exclusive.
	Permits int
	Count   int64 // number of holds of a reentrant lock's owner, this one included; 0 = not reentrant
	// Spent is the part of the TTL that had passed when Acquire was called. It is positive if the lock was granted
	// during an earlier Wait.
	Spent time.Duration
	// Tried is the time from the call of AcquireWithin, or of an Acquire that was refused first, to the earliest
	// possible start of the successful try. The TTL counts from that start.
	Tried time.Duration
	// Lost is closed when the lock learns that the hold is lost or unreliable; nil if it never learns this.
	Lost <-chan struct{}
}

// Lock is a worker's access to a lock. A worker calls one method after another.
type Lock interface {
	// Acquire makes one try. ErrBusy means that another worker holds the lock. If the outcome of an error is Unknown,
	// the returned lease has the token, and the worker releases the lock in case it was granted.
	Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error)
	// Extend makes the lease end at ttl from now. ErrLost means that the lock is not held any more.
	Extend(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
	// Release releases the lock. ErrLost means that it was not held any more.
	Release(ctx context.Context, l Lease) error
	// Close ends background work. It releases nothing, as if the worker had died.
	Close() error
}

// Waiter is a lock that waits better than by polling. A worker calls Wait after an Acquire was refused. Wait returns
// when another try makes sense, and says what woke it. It returns an error if ctx is done, or if it cannot wait, and
// then the worker polls. After a Wait without an error the worker must try, because it may be the only one that was
// woken. A visit that gives up calls Wait with a ctx that is done, so that the lock leaves its queue.
type Waiter interface {
	Wait(ctx context.Context, key string) (history.Wake, error)
}

// Queue is a Waiter that may receive the lock while it waits. Handed returns such a grant if it has not expired, and
// the earliest time at which it can have been made. Lease.Spent is the part of the TTL before that time. Acquire
// returns the same grant.
type Queue interface {
	Waiter
	Handed(key string) (lease Lease, since time.Time, ok bool)
}

// Patient is a lock that waits inside one call. AcquireWithin tries for the duration wait; ErrBusy means that no try
// was successful. If Lease.Tried is unknown, the lease counts from the call.
type Patient interface {
	AcquireWithin(ctx context.Context, key string, ttl, wait time.Duration) (Lease, error)
}

// Sharer is a lock that several workers may hold together: readers, or holders of permits. AcquireShare requests a
// number of permits; a reader requests 1.
type Sharer interface {
	AcquireShare(ctx context.Context, key string, ttl time.Duration, permits int) (Lease, error)
}

// PatientSharer is a Patient that also waits for shared use.
type PatientSharer interface {
	AcquireShareWithin(ctx context.Context, key string, ttl time.Duration, permits int,
		wait time.Duration) (Lease, error)
}

// Several is a lock that takes several keys in one call, all or none; ErrBusy means none. A lock with Spec.Waits may
// wait for the duration wait, other locks make one try. Extend and Release apply to all keys.
type Several interface {
	AcquireAll(ctx context.Context, keys []string, ttl, wait time.Duration) (Lease, error)
}

// Upgrader is a lock whose reader can become the writer, and no other worker writes in between. ErrBusy means that
// there are other readers and the caller is still a reader. ErrLost means that it is not.
type Upgrader interface {
	Upgrade(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
}

// After ErrBusy and ErrLost the call certainly had no effect. ErrMaybeBusy is for a lock that gives the same answer
// to a refusal and to other failures, so the effect is unknown.
var (
	ErrBusy      = errors.New("the lock is held by another worker")
	ErrMaybeBusy = errors.New("the lock is held by another worker, or something else went wrong")
	ErrLost      = errors.New("the lock is no longer ours")
)

// After these errors nothing was written. ErrFenced means that the store has seen a greater fencing token;
// ErrConflict, that another worker has stored since the load; ErrRefused, that the store refused for another reason.
var (
	ErrFenced   = errors.New("the store refused a stale fencing token")
	ErrConflict = errors.New("another worker stored in between")
	ErrRefused  = errors.New("the store refused")
)

// ErrCrashed means that the worker was killed during the call. Completed steps are not undone.
var ErrCrashed = errors.New("the worker was killed")

// ErrServer means that the servers lack a feature that the lock needs.
var ErrServer = errors.New("the servers cannot run this lock")

// ErrQuorum means that too few sites granted the lock. Their grants were released.
var ErrQuorum = errors.New("no quorum")

// NoQuorum is an ErrQuorum with details. Silent is the number of sites that neither granted the lock nor reported it
// as held. With Silent 0, the try was refused.
type NoQuorum struct{ Granted, Sites, Silent int }

func (e NoQuorum) Error() string {
	text := fmt.Sprintf("%d of %d sites granted", e.Granted, e.Sites)
	if e.Silent > 0 {
		text += fmt.Sprintf(", %d did not answer", e.Silent)
	}
	return text + ": " + ErrQuorum.Error()
}

// Is makes errors.Is match ErrQuorum.
func (e NoQuorum) Is(target error) bool { return target == ErrQuorum }

// Silent returns NoQuorum.Silent, or 1 if err has no such details.
func Silent(err error) int {
	if e, ok := errors.AsType[NoQuorum](err); ok {
		return e.Silent
	}
	return 1
}
