// Package locks is what a lock under test is: its Spec, its methods, what it is given and what its errors say. A lock
// makes one try and says what is certain about its outcome; waiting, backing off and judging are for others. The locks
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
	Library bool   // it is a library, as people use it
	Sites   Sites
	Engine  string // the servers it is a client of, as topologies name them; empty = Redis
	Assumes string // what it needs to be safe
	Broken  string // why it is wrong; empty for a lock that is right within its assumptions
	Expect  []Expectation
	Needs   []Release // the servers that have its commands, any of them; empty for a lock that runs on all
	Claims  history.Claims
	// Counting is how visits count under it. Other values are baselines, which use no lock.
	Counting Counting
	Listens  bool // its waiters subscribe to channels
	// Outlives says that what a worker holds lives on when the worker has died: a library renews it as long as the
	// process lives, or it has a mutex of its process locked. Only the end of the whole process is a crash.
	Outlives bool
	// Linger is how much longer than ttl a lease may last, whose holder is told of it or is gone; nil = no longer.
	Linger func(ttl time.Duration) time.Duration
	// Session says that a hold ends with the connection that it was granted on.
	Session bool
	// Waits says that it waits by itself: what Open returns is Patient.
	Waits bool
	// Shared says that several workers may use one object of the lock at the same time.
	Shared bool
	// Queues says that workers of a process wait for a mutex while its holder waits for the server.
	Queues bool
	Open   func(Env) (Lock, error)
	// Defaults says that its clients can name no database and no user: its servers have database 0 and the default
	// user.
	Defaults bool
	// Program is where the lock lives if it is none of this program's; Open is nil then.
	Program *Program
}

// Counting says how a visit adds its page view to the counter.
type Counting int

// The ways to count.
const (
	TwoSteps   Counting = iota // load, stay, store: what a lock has to guard
	OneStep                    // the store adds one by itself
	Optimistic                 // a store that has no effect if anybody else stored since the load; it is repeated
	Elsewhere                  // a visit is one request to a service that does its own locking
)

// Expectation is a failure that verify has to find, and the run that shows it. A broken lock must show one of its
// causes. A right one must pass all scenarios but those that it names, and show the cause there, and where a fault
// breaks what it assumes.
type Expectation struct {
	Cause    string // as history names it
	Scenario string // that shows it; empty, of a broken lock = several do
	Fault    string // that shows it of a right lock, as the command line takes it
	// Sometimes says that the scenario shows it of a right lock in some runs only: then to pass is as expected, too.
	Sometimes bool
}

// Expected are the causes that a lock has to show with a fault; without one, those that a broken lock has to show.
func (s Spec) Expected(fault string) (causes []string) {
	for _, e := range s.Expect {
		if e.Fault == fault && !slices.Contains(causes, e.Cause) {
			causes = append(causes, e.Cause)
		}
	}
	return causes
}

// Shows tells whether the entry of a lock says that it fails in a scenario.
func (s Spec) Shows(scenario string) bool {
	return slices.ContainsFunc(s.Expect, func(e Expectation) bool { return e.Scenario == scenario })
}

// Release is a server that has what a lock needs, from a version on.
type Release struct {
	Name  string // as the server calls itself
	Since string // major.minor
}

// Runs says whether the lock's commands are known to the server: nil, or an ErrServer that names the version it has
// and the ones it would need. A server whose version is not known is given a try.
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

// Offers says what a lock lacks that its spec promises; nil if it has all.
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

// Auto is the lock that a topology is made for: the first of them that fits it, needs all of its sites, and is right.
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
	// Sites are shared by all workers of the process; the lock must not close them. Servers that are not Redis have
	// none: there are Places.
	Sites   []redis.UniversalClient
	Rand    *rand.Rand // of this worker alone
	Process *Process
	// Renewals is where a lock that renews leases in the background records its extensions, from one goroutine at
	// a time: an Op that names no Hold but the Token. It is nil unless the lock claims Renews.
	Renewals *history.Lane
	// Places are what Sites lead to, in the same order, for libraries that make connections of their own.
	Places []*topologies.Site
	// Source is what links tell the process's clients from others by, for the same libraries; 0 = nothing.
	Source int
	// Server is what runs at the sites; zero if that is not known.
	Server topologies.Server
	// Within begins the names of all keys and channels where servers belong to others; empty = names are as the lock's
	// own or its model's are. Keys that the lock is given begin with it.
	Within string
	// Pause is called between the two commands of a lock that needs two, so that a fault can hold or kill the worker
	// there. An error ends the call at once, with nothing undone. It is nil if no fault asks for it.
	Pause func(ctx context.Context, key string) error
}

// Between is called by a lock between its two commands: it does what Pause says.
func (e Env) Between(ctx context.Context, key string) error {
	if e.Pause == nil {
		return nil
	}
	return e.Pause(ctx, key)
}

// Process is what the workers of one process share. Its zero value is ready.
type Process struct {
	Kept sync.Map // what locks keep as long as the process lives, by keys of types of their own

	mu     sync.Mutex
	shared map[any]*shared
}

// Lease is a hold as its holder knows it. It is plain data.
type Lease struct {
	Key string
	// of a hold of several keys: all of them, in the order in which they were asked for; nil = Key alone
	Keys  []string
	Token string    // marks the hold in the servers; unique
	Fence int64     // fencing token; 0 = the lock has none
	Until time.Time // its holder may believe in it before then; zero = without end
	// Permits is how many of the lock's permits it has: 1 of a reader; 0 = it is exclusive.
	Permits int
	Count   int64 // holds that the owner of a reentrant lock has with this one; 0 = the lock is not reentrant
	// Spent is the part of the TTL that was over when Acquire was called: a lock that waits by itself may have been
	// granted before.
	Spent time.Duration
	// Tried is how long after the call of an AcquireWithin, or of an Acquire that was refused before, the try began, at
	// the earliest, that was granted: until then the lock waited for others. The TTL counts from there.
	Tried time.Duration
	// Lost is closed when the lock finds out that the hold is lost or can be relied on no more; nil if it never says.
	Lost <-chan struct{}
}

// Lock is one worker's access to a lock. A worker calls one method at a time.
type Lock interface {
	// Acquire makes one try. ErrBusy says that another worker holds the lock. After an error whose outcome is
	// Unknown the lease still names the token, so that the hold can be given back if it came about after all.
	Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error)
	// Extend lengthens the lease to ttl from now. ErrLost says that it is no longer ours.
	Extend(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
	// Release gives the hold back. ErrLost says that it was no longer ours.
	Release(ctx context.Context, l Lease) error
	// Close ends what runs in the background. It gives nothing back: that is how a worker dies, too.
	Close() error
}

// Waiter is a lock that can wait better than by polling. Wait is called after an Acquire that was refused. It returns
// when another try makes sense, and says why; the worker does not poll besides. It returns an error when ctx is done or
// when it cannot wait: then the worker polls. After a Wait without error the worker tries at least once: it may be the
// only one that was woken. A visit that gives up calls Wait once more with a ctx that is done, so that the lock can
// leave a queue.
type Waiter interface {
	Wait(ctx context.Context, key string) (history.Wake, error)
}

// Queue is a Waiter that may be granted the lock while it waits. Handed returns such a grant, if there is one that has
// not expired, and when it came about at the earliest: until then Lease.Spent counts. Acquire would return it as well.
type Queue interface {
	Waiter
	Handed(key string) (lease Lease, since time.Time, ok bool)
}

// Patient is a lock that waits by itself: AcquireWithin makes tries for so long, and ErrBusy says that none was
// granted. If Lease.Tried is unknown, the lease counts from the call.
type Patient interface {
	AcquireWithin(ctx context.Context, key string, ttl, wait time.Duration) (Lease, error)
}

// Sharer is a lock that several may hold at once, readers or holders of permits: AcquireShare asks for so many permits.
// A reader asks for 1.
type Sharer interface {
	AcquireShare(ctx context.Context, key string, ttl time.Duration, permits int) (Lease, error)
}

// PatientSharer is a Patient whose readers, or who ask for permits, wait in the lock as well.
type PatientSharer interface {
	AcquireShareWithin(ctx context.Context, key string, ttl time.Duration, permits int,
		wait time.Duration) (Lease, error)
}

// Several is a lock that takes several keys in one call, all of them or none: ErrBusy says that it has none of them.
// A lock that waits itself (Spec.Waits) may wait for so long; another makes one try. Extend and Release are of all of
// them.
type Several interface {
	AcquireAll(ctx context.Context, keys []string, ttl, wait time.Duration) (Lease, error)
}

// Upgrader is a lock whose reader can become the writer. The page stays as the reader has seen it until then: ErrBusy
// says that it is a reader still, because there are others, ErrLost that it is not.
type Upgrader interface {
	Upgrade(ctx context.Context, l Lease, ttl time.Duration) (Lease, error)
}

// ErrBusy and ErrLost say that the call had certainly no effect. ErrMaybeBusy is the refusal of a lock that answers the
// same when something else went wrong: what the call did is not known.
var (
	ErrBusy      = errors.New("the lock is held by another worker")
	ErrMaybeBusy = errors.New("the lock is held by another worker, or something else went wrong")
	ErrLost      = errors.New("the lock is no longer ours")
)

// ErrFenced says that the store has taken a greater fencing token, ErrConflict that somebody else stored since the
// load, ErrRefused that the store answered that it will not. Nothing was written.
var (
	ErrFenced   = errors.New("the store refused a stale fencing token")
	ErrConflict = errors.New("another worker stored in between")
	ErrRefused  = errors.New("the store refused")
)

// ErrCrashed says that the worker was killed in the middle of the call. Completed steps stay done.
var ErrCrashed = errors.New("the worker was killed")

// ErrServer says that the servers lack what a lock needs.
var ErrServer = errors.New("the servers cannot run this lock")

// ErrQuorum says that too few sites granted the lock to hold it; what they granted has been given back.
var ErrQuorum = errors.New("no quorum")

// NoQuorum is an ErrQuorum that says why. Silent is how many sites neither granted the lock nor answered that it is
// held: without such sites the try was refused, as by one server that answers "busy".
type NoQuorum struct{ Granted, Sites, Silent int }

// Error says what the sites did.
func (e NoQuorum) Error() string {
	text := fmt.Sprintf("%d of %d sites granted", e.Granted, e.Sites)
	if e.Silent > 0 {
		text += fmt.Sprintf(", %d did not answer", e.Silent)
	}
	return text + ": " + ErrQuorum.Error()
}

// Is tells that the error is an ErrQuorum.
func (e NoQuorum) Is(target error) bool { return target == ErrQuorum }

// Silent is how many sites did not answer a try that found no quorum. It is 1 if the error does not say.
func Silent(err error) int {
	if e, ok := errors.AsType[NoQuorum](err); ok {
		return e.Silent
	}
	return 1
}
