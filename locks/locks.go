// Package locks defines what a lock under test is: its Spec, its methods, what it is given and what its errors mean. A
// lock makes one try and says what is certain about the outcome. Waiting and backing off are done by workers. The locks
// of the suite are in locks/catalogue.
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
	Library bool   // it is a library, used as people use it
	Sites   Sites
	Engine  string // the engine of its servers, as topologies name it; empty = Redis
	Assumes string // assumptions under which it is safe
	Broken  string // why it is wrong; empty for a lock that is correct under its assumptions
	Expect  []Expectation
	Needs   []Release // servers that have its commands, one of which is needed; empty = all have them
	Claims  history.Claims
	// Counting is how visits count. Other values than TwoSteps are baselines, which use no lock.
	Counting Counting
	Listens  bool // its waiters subscribe to channels
	// Outlives means that a lock stays held when its worker has died, until the process ends: a library renews it as
	// long as the process lives, or it holds a mutex of the process. Only the end of the process is a crash.
	Outlives bool
	// Linger is how much longer than ttl a lease may last, if its holder knows that or is gone; nil = no longer.
	Linger func(ttl time.Duration) time.Duration
	// Session means that a hold ends with the connection that it was granted on.
	Session bool
	// Waits means that Acquire waits by itself: Open returns a Patient.
	Waits bool
	// Shared means that several workers may use one lock object concurrently.
	Shared bool
	// Queues means that workers of a process wait for a mutex while its holder waits for the server.
	Queues bool
	Open   func(Env) (Lock, error)
	// Defaults means that its clients can select no database and no user: its servers use database 0 and the default
	// user.
	Defaults bool
	// Program is the program that the lock runs in, if it is not part of this one; Open is nil then.
	Program *Program
}

// Counting says how a visit adds its page view to the counter.
type Counting int

// The ways to count.
const (
	TwoSteps   Counting = iota // load, wait, store: a lock must guard this
	OneStep                    // an atomic increment
	Optimistic                 // a store that fails if another worker has stored since the load; it is repeated
	Elsewhere                  // a visit is a request to a service that does its own locking
)

// Expectation is a failure that verify must find, and the run that shows it. A broken lock must show one of its causes.
// A correct one must pass all scenarios except those named here, in which it must show the cause, and those whose fault
// breaks its assumptions.
type Expectation struct {
	Cause    string // name of the cause in history
	Scenario string // scenario that shows it; for a broken lock, empty = several do
	Fault    string // for a correct lock: the fault that shows it, in the syntax of the command line
	// Sometimes means that a correct lock shows it in some runs only, so a pass is expected as well.
	Sometimes bool
}

// Expected lists the causes that a lock must show under a fault or, if that is empty, those that a broken lock must
// show.
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

// Release is a server program from a version on.
type Release struct {
	Name  string // name of the program, as it reports it
	Since string // major.minor
}

// Runs returns nil if the server has the lock's commands, or an ErrServer with the version it has and those that have
// them. A server of unknown version is assumed to have them.
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

// Offers says what a lock lacks that its Spec promises; nil if it has everything.
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

// Lingers is by how much a lease may last longer than ttl.
func (s Spec) Lingers(ttl time.Duration) time.Duration {
	if s.Linger == nil {
		return 0
	}
	return s.Linger(ttl)
}

// Auto is the lock for a topology: the first correct one that fits it and uses all of its sites.
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

// A lock that needs no server runs on any topology.
const (
	NoSite Sites = iota
	OneSite
	ManySites
)

// Fits tells whether a lock of this kind can live on a topology with n sites.
func (s Sites) Fits(n int) bool { return s != OneSite || n == 1 }

// Env is what a lock is given when it is opened, once for each worker.
type Env struct {
	// Sites are Redis clients, one for each site, which all workers of the process share; the lock must not close them.
	// For servers other than Redis use Places.
	Sites   []redis.UniversalClient
	Rand    *rand.Rand // for this worker alone
	Process *Process
	// Renewals is where a lock that renews leases in the background records its extensions, from one goroutine at a
	// time: as an Op that names the Token, not the Hold. It is nil unless the lock claims Renews.
	Renewals *history.Lane
	// Places are the sites that Sites connect to, in the same order, for libraries that make their own connections.
	Places []*topologies.Site
	// Source is the number by which proxies identify the process's clients, for such libraries; 0 = none.
	Source int
	// Server is the program at the sites; zero if it is unknown.
	Server topologies.Server
	// Within is the prefix of all keys and channels on attached servers; empty = the lock names them itself. The keys
	// that the lock is given begin with it.
	Within string
	// Pause is called between the two commands of a broken lock that should be one, so that a fault can stop or kill
	// the worker there. An error ends the call at once, with nothing undone. It is nil if no fault needs it.
	Pause func(ctx context.Context, key string) error
}

// Between calls Pause, if there is one.
func (e Env) Between(ctx context.Context, key string) error {
	if e.Pause == nil {
		return nil
	}
	return e.Pause(ctx, key)
}

// Process has what the workers of a process share. Its zero value is ready to use.
type Process struct {
	Kept sync.Map // values that locks keep as long as the process lives, under keys of their own types

	mu     sync.Mutex
	shared map[any]*shared
}

// Lease is a granted lock, as its holder knows it. It is plain data.
type Lease struct {
	Key string
	// Keys lists all keys of a lock on several, in the order of the request; nil = only Key.
	Keys  []string
	Token string    // identifies the hold on the servers; unique
	Fence int64     // fencing token; 0 = the lock has none
	Until time.Time // deadline until which the holder may rely on it; zero = it does not end
	// Permits is the number of permits: 1 for a reader; 0 = exclusive.
	Permits int
	Count   int64 // number of holds of a reentrant lock's owner, with this one; 0 = it is not reentrant
	// Spent is the part of the TTL that had passed when Acquire was called: a lock that waits may have been granted
	// before.
	Spent time.Duration
	// Tried is how long after the call of AcquireWithin (or of an Acquire that was refused before) the successful try
	// began at the earliest: until then the lock waited for others. The TTL counts from there.
	Tried time.Duration
	// Lost is closed when the lock finds out that the hold is lost or cannot be relied on any more; nil if it never
	// does.
	Lost <-chan struct{}
}

// Lock is a worker's access to a lock. A worker calls one method at a time.
type Lock interface {
	// Acquire makes one try. ErrBusy says that another worker holds the lock. After an error whose outcome is Unknown,
	// the lease has the token, so that it can be released in case it was granted.
	Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error)
	// Extend extends the lease to ttl from now. ErrLost says that the lock is not held any more.
	Extend(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
	// Release releases the lock. ErrLost says that it was not held any more.
	Release(ctx context.Context, l Lease) error
	// Close ends background work. It releases nothing, as if the worker had died.
	Close() error
}

// Waiter is a lock that can wait better than by polling. Wait is called after an Acquire was refused. It returns when
// another try makes sense, and why. It returns an error when ctx is done, or when it cannot wait: then the worker
// polls. After a Wait without an error the worker must try at least once, because it may be the only one that was
// woken. A visit that gives up calls Wait once more with a ctx that is done, so that the lock can leave a queue.
type Waiter interface {
	Wait(ctx context.Context, key string) (history.Wake, error)
}

// Queue is a Waiter that may be granted the lock while it waits. Handed returns such a grant, if there is one that has
// not expired, with the earliest time at which it was made; Lease.Spent counts until then. Acquire would return it as
// well.
type Queue interface {
	Waiter
	Handed(key string) (lease Lease, since time.Time, ok bool)
}

// Patient is a lock that waits by itself: AcquireWithin tries for that long, and ErrBusy says that none was successful.
// If Lease.Tried is unknown, the lease counts from the call.
type Patient interface {
	AcquireWithin(ctx context.Context, key string, ttl, wait time.Duration) (Lease, error)
}

// Sharer is a lock that several may hold at once: readers, or holders of permits. AcquireShare requests a number of
// permits; a reader requests 1.
type Sharer interface {
	AcquireShare(ctx context.Context, key string, ttl time.Duration, permits int) (Lease, error)
}

// PatientSharer is a Patient that also waits by itself for shared use.
type PatientSharer interface {
	AcquireShareWithin(ctx context.Context, key string, ttl time.Duration, permits int,
		wait time.Duration) (Lease, error)
}

// Several is a lock that takes several keys in one call, all or none: ErrBusy says that it has none. A lock with
// Spec.Waits may wait for that long; others make one try. Extend and Release concern all keys.
type Several interface {
	AcquireAll(ctx context.Context, keys []string, ttl, wait time.Duration) (Lease, error)
}

// Upgrader is a lock whose reader can become the writer. Nobody else writes in between. ErrBusy says that it is still a
// reader, because there are others; ErrLost that it is not.
type Upgrader interface {
	Upgrade(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
}

// ErrBusy and ErrLost say that the call certainly had no effect. ErrMaybeBusy is the refusal of a lock that gives the
// same answer if something else went wrong, so that the effect is unknown.
var (
	ErrBusy      = errors.New("the lock is held by another worker")
	ErrMaybeBusy = errors.New("the lock is held by another worker, or something else went wrong")
	ErrLost      = errors.New("the lock is no longer ours")
)

// ErrFenced says that the store has seen a greater fencing token, ErrConflict that another worker has stored since the
// load, ErrRefused that the store refused. Nothing was written.
var (
	ErrFenced   = errors.New("the store refused a stale fencing token")
	ErrConflict = errors.New("another worker stored in between")
	ErrRefused  = errors.New("the store refused")
)

// ErrCrashed says that the worker was killed in the middle of the call. Completed steps are not undone.
var ErrCrashed = errors.New("the worker was killed")

// ErrServer says that the servers lack what a lock needs.
var ErrServer = errors.New("the servers cannot run this lock")

// ErrQuorum says that too few sites granted the lock; their grants were released.
var ErrQuorum = errors.New("no quorum")

// NoQuorum is an ErrQuorum with details. Silent is how many sites neither granted the lock nor answered that it is
// held. If it is 0, the try was refused.
type NoQuorum struct{ Granted, Sites, Silent int }

// Error describes what the sites did.
func (e NoQuorum) Error() string {
	text := fmt.Sprintf("%d of %d sites granted", e.Granted, e.Sites)
	if e.Silent > 0 {
		text += fmt.Sprintf(", %d did not answer", e.Silent)
	}
	return text + ": " + ErrQuorum.Error()
}

// Is makes errors.Is match ErrQuorum.
func (e NoQuorum) Is(target error) bool { return target == ErrQuorum }

// Silent is how many sites did not answer a try that found no quorum; 1 if the error does not say.
func Silent(err error) int {
	if e, ok := errors.AsType[NoQuorum](err); ok {
		return e.Silent
	}
	return 1
}
