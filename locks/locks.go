// Package locks defines a lock under test: its description (Spec), its methods (Lock), its surroundings (Env) and
// the meaning of its errors. Acquire makes one try and reports what is certain about the outcome; the worker that
// calls it waits and tries again. The suite's own locks are in locks/catalogue.
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
	Needs   []Release // the server must be one of these; empty = any server
	Claims  history.Claims
	// Counting says how a visit adds its page view to the counter. All values but TwoSteps are baselines without a
	// lock.
	Counting Counting
	Listens  bool // waiters subscribe to Pub/Sub channels
	// Outlives means that the lock stays held when its worker dies, until the process ends. For example, a library
	// renews the lock as long as the process lives, or a mutex of the process is held.
	Outlives bool
	// Linger returns the longest time that a lease may last beyond its TTL, for example because TTLs are rounded up
	// to seconds, or because leases end with sessions. Nil = leases never last longer.
	Linger func(ttl time.Duration) time.Duration
	// Session means that a hold ends when the connection on which it was granted is closed.
	Session bool
	// Waits means that Acquire itself waits: Open returns a Patient.
	Waits bool
	// Shared means that several workers may use one lock object concurrently.
	Shared bool
	// Queues means that the workers of a process share a mutex. A worker keeps the mutex while it waits for the
	// server, so the other workers wait too.
	Queues bool
	Open   func(Env) (Lock, error)
	// Defaults means that the lock's clients use database 0 and the default user, because they cannot select others.
	Defaults bool
	// Program is the external program that runs the lock; Open is nil then. Nil = the lock is part of this program.
	Program *Program
}

// Counting is the way in which a visit, one use of the lock by a worker, adds a page view to the counter.
type Counting int

// The ways to count.
const (
	TwoSteps   Counting = iota // load, wait, store; a lock must guard these steps
	OneStep                    // one atomic increment
	Optimistic                 // a store that fails, and is repeated, if another worker has stored since the load
	Elsewhere                  // a request to a service that does its own locking
)

// Expectation is a failure that the command "verify" must find, and the run that shows the failure. A broken lock
// must show one of its expected causes. A correct lock must pass all other scenarios, except those whose fault breaks
// its assumptions.
type Expectation struct {
	Cause    string // name of the cause in package history
	Scenario string // scenario that shows it; empty for a broken lock = several scenarios do
	Fault    string // for a correct lock: the fault that shows it, in the syntax of the command line
	// Sometimes means that not every run of a correct lock shows the cause. Then a run that passes is as expected,
	// too.
	Sometimes bool
}

// Expected lists the causes expected of the lock under a fault. For a broken lock the fault is empty.
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

// Release is a server program of the version Since or later.
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

// Offers returns an error if the lock lacks a method that its Spec promises. The error names the method.
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

// Lingers returns the longest time that a lease may last beyond its TTL.
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

// Sites says how many independent Redis sites a lock needs.
type Sites int

const (
	NoSite Sites = iota
	OneSite
	ManySites
)

// Fits reports whether a lock that needs s sites can run on a topology with n sites.
func (s Sites) Fits(n int) bool { return s != OneSite || n == 1 }

// Env is what a worker passes to Open. Each worker has its own Env.
type Env struct {
	// Sites are Redis clients, one for each site. All workers of the process share them, and the lock must not close
	// them. For servers other than Redis use Places.
	Sites   []redis.UniversalClient
	Rand    *rand.Rand // used by this worker only
	Process *Process
	// Renewals is the log in which a lock records the extensions that it makes in the background. Only one goroutine
	// may write to it at any time. Each Op there has the Token of the hold, no Hold, and the key -1. Renewals is nil
	// if the lock does not claim Renews. See docs/OWN.md.
	Renewals *history.Lane
	// Places describe the servers of Sites, in the same order. Libraries with their own connections use Places.
	Places []*topologies.Site
	// Source identifies this process to the suite's proxies. Libraries pass it on when they open their own
	// connections. 0 = no number.
	Source int
	// Server is the program at the sites; the zero Server = unknown.
	Server topologies.Server
	// Within is the prefix of all keys and channels on servers that the user provides; empty = the lock may choose
	// any names. The keys that the lock is asked to acquire have this prefix already.
	Within string
	// Pause is called by a broken lock between two commands that a correct lock would send as one. A fault can stop
	// or kill the worker at this point. If Pause returns an error, the worker is dead: the call must return without
	// undoing anything. Nil = no fault uses Pause.
	Pause func(ctx context.Context, key string) error
}

func (e Env) Between(ctx context.Context, key string) error {
	if e.Pause == nil {
		return nil
	}
	return e.Pause(ctx, key)
}

// Process is the state that all workers of a process share. Its zero value is ready to use.
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
	// Permits is the number of permits that the hold has; a reader has 1. 0 = the hold is exclusive.
	Permits int
	Count   int64 // number of holds of a reentrant lock's owner, this one included; 0 = not reentrant
	// Spent is the part of the TTL that had already passed when Acquire was called. It is positive if the lock was
	// granted earlier, during a Wait.
	Spent time.Duration
	// Tried is for a call of Acquire or AcquireWithin that was granted after refused tries. It is the time from the
	// call to the earliest possible start of the granted try. The TTL counts from that start; 0 = it counts from the
	// call.
	Tried time.Duration
	// Lost is closed when the lock learns that the hold is lost or may be lost; nil = the lock never learns this.
	Lost <-chan struct{}
}

// Lock is a worker's access to a lock. A worker calls one method after another.
type Lock interface {
	// Acquire makes one try. ErrBusy means that another worker holds the lock. After an error that leaves the
	// outcome Unknown, the lease has the token of the try. The worker then releases this lease, in case the lock was
	// granted.
	Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error)
	// Extend sets the end of the lease to the time ttl from now. ErrLost means that the lock was not held any more.
	Extend(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
	// Release releases the lock. ErrLost means that it was not held any more.
	Release(ctx context.Context, l Lease) error
	// Close ends background work. It does not release held locks, because it stands for the death of the worker.
	Close() error
}

// Waiter is a lock with its own way to wait, better than polling. A worker calls Wait after a refused Acquire. Wait
// returns what woke it, as soon as another try makes sense. If Wait returns an error, the worker polls instead.
//
// After a Wait without an error the worker must try again, because it may be the only one that was woken. A worker
// that gives up calls Wait with a cancelled ctx, and the lock then leaves its queue.
type Waiter interface {
	Wait(ctx context.Context, key string) (history.Wake, error)
}

// Queue is a Waiter that can be granted the lock during Wait. Handed returns such a grant if its lease has not
// ended; otherwise ok is false. The lock was granted at the time since or later. The part of the TTL that had passed
// by then is lease.Spent. The next Acquire returns the same grant.
type Queue interface {
	Waiter
	Handed(key string) (lease Lease, since time.Time, ok bool)
}

// Patient is a lock that waits inside one call. AcquireWithin repeats its tries for the duration wait. ErrBusy means
// that every try was refused.
type Patient interface {
	AcquireWithin(ctx context.Context, key string, ttl, wait time.Duration) (Lease, error)
}

// Sharer is a lock that several workers can hold together, as readers or as holders of permits. The argument permits
// is the number of permits that AcquireShare requests; a reader requests 1.
type Sharer interface {
	AcquireShare(ctx context.Context, key string, ttl time.Duration, permits int) (Lease, error)
}

// PatientSharer is a Sharer that waits inside one call, as a Patient does.
type PatientSharer interface {
	AcquireShareWithin(ctx context.Context, key string, ttl time.Duration, permits int,
		wait time.Duration) (Lease, error)
}

// Several is a lock that takes several keys in one call: all of them or none. ErrBusy means that it took none. If
// Spec.Waits is set, AcquireAll may wait for the duration wait; otherwise it makes one try. Extend and Release apply
// to all keys.
type Several interface {
	AcquireAll(ctx context.Context, keys []string, ttl, wait time.Duration) (Lease, error)
}

// Upgrader is a lock whose reader can become the writer without another writer in between. ErrBusy means that there
// are other readers; the caller is still a reader. ErrLost means that the caller is not a reader any more.
type Upgrader interface {
	Upgrade(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
}

// A call that returns ErrBusy or ErrLost has certainly had no effect. ErrMaybeBusy is for a lock that reports
// refusals and other failures in the same way; the call may have had an effect.
var (
	ErrBusy      = errors.New("the lock is held by another worker")
	ErrMaybeBusy = errors.New("the lock is held by another worker, or something else went wrong")
	ErrLost      = errors.New("the lock is no longer ours")
)

// These errors mean that the page store wrote nothing. ErrFenced: the store has seen a greater fencing token.
// ErrConflict: another worker has stored since this worker's load. ErrRefused: any other reason.
var (
	ErrFenced   = errors.New("the store refused a stale fencing token")
	ErrConflict = errors.New("another worker stored in between")
	ErrRefused  = errors.New("the store refused")
)

// ErrCrashed means that a fault killed the worker during the call. Steps that the call had completed are not undone.
var ErrCrashed = errors.New("the worker was killed")

// ErrServer means that the servers lack a feature that the lock needs.
var ErrServer = errors.New("the servers cannot run this lock")

// ErrQuorum means that too few sites granted the lock. Their grants were released.
var ErrQuorum = errors.New("no quorum")

// NoQuorum is an ErrQuorum with numbers. Silent is the number of sites that neither granted the lock nor refused it
// as held. If Silent is 0, each site that did not grant the lock refused it.
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

// Silent returns the field Silent of a NoQuorum error. It returns 1 for other errors.
func Silent(err error) int {
	if e, ok := errors.AsType[NoQuorum](err); ok {
		return e.Silent
	}
	return 1
}
