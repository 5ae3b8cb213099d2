package workload

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
	"hammerlock/topologies"
)

// Counter is the store of the page views. Load and Store are two steps on purpose: a lost update must be
// possible. It is used by many workers at once.
type Counter interface {
	// Load reads a page's count; the zero Count if it was never written.
	Load(ctx context.Context, page string) (Count, error)
	// Store writes a page's count. A fenced counter answers locks.ErrFenced to an old token and writes nothing.
	Store(ctx context.Context, page string, c Count) error
	// Close closes what the counter itself has opened.
	Close() error
}

// Shown is a fenced counter whose loads pass the token of their hold. From then on it refuses stores of earlier holds,
// because these would change what was read. A load of an earlier hold gets locks.ErrFenced. Each hold loads before it
// stores, so a load keeps its token less one: the store of the same hold is still accepted.
type Shown interface {
	LoadFor(ctx context.Context, page string, fence int64) (Count, error)
}

// Lister is a counter that reads many pages in one round trip.
type Lister interface {
	LoadAll(ctx context.Context, pages []string) ([]Count, error)
}

// Adder is a counter that adds one view in one step and returns the count before. Holders that are not alone use it.
type Adder interface {
	Add(ctx context.Context, page string, writer history.ID) (replaced Count, err error)
}

// Atomic is a counter that works without a lock: the baselines use it.
type Atomic interface {
	Counter
	Adder
	// Transact passes a page's count to visit, which may store once; the store returns locks.ErrConflict if another
	// worker stored in between. Transact returns the error of a failed load, or what visit returned.
	Transact(ctx context.Context, page string, visit func(seen Count, store func(Count) error) error) error
}

// Count is a number of page views and the operation that wrote it, so that every load says whose store it saw.
type Count struct {
	Views  int64
	Writer history.ID
	Fence  int64 // fencing token of the writer's hold; 0 = its lock has no tokens
}

// AllCounters lists the stores of the counter.
var AllCounters = []CounterSpec{
	RedisCounter, RedisFenced, topologyStore, topologyFenced, memoryStore, memoryFenced, sqliteStore, sqliteFenced,
	backstopStore,
}

// CounterSpec describes a store of the counter.
type CounterSpec struct {
	Name   string
	Doc    string
	Place  Place
	Server topologies.Spec // the topology of an OwnServer; the zero Spec = single
	Fenced bool            // the counter refuses an old fencing token, or claims to
	Broken string          // why the fence does not hold; empty if it does
	// Open opens the counter; a worker process opens one of its own.
	Open func(CounterEnv) (Counter, error)
}

// Place says where a counter stores its counts.
type Place int

// The places.
const (
	OwnServer  Place = iota // a separate server that no fault touches
	OnTopology              // the servers under test
	OfService               // the service, which counts itself
	InMemory                // this process alone
	InFile                  // a file that processes share
)

// ServiceCounter is the count that a service keeps.
var ServiceCounter = CounterSpec{Name: "service", Place: OfService}

// CounterEnv has what a counter needs to open; which fields are set depends on its place.
type CounterEnv struct {
	Client redis.UniversalClient // OwnServer, OnTopology; the caller closes it. Nil on servers other than Redis
	Site   *topologies.Site      // the site of Client
	File   string                // InFile
}

// FindCounter returns the spec with that name.
func FindCounter(name string) (CounterSpec, bool) {
	for _, s := range AllCounters {
		if s.Name == name {
			return s, true
		}
	}
	return CounterSpec{}, false
}

// Fits says why the counter does not work with a lock or with so many processes; empty if it does.
func (s CounterSpec) Fits(lock locks.Spec, processes int) string {
	switch {
	case s.Place == InMemory && processes > 1:
		return "the memory of one process counts for one process"
	case s.Fenced && !lock.Claims.Fences:
		return "a fence asks for a token, the lock draws none"
	}
	return ""
}

// text formats a count as "views writer" or "views writer fence".
func (c Count) text(fenced bool) []byte {
	b := strconv.AppendInt(make([]byte, 0, 48), c.Views, 10)
	b = append(b, ' ')
	b = strconv.AppendUint(b, uint64(c.Writer), 10)
	if fenced {
		b = append(b, ' ')
		b = strconv.AppendInt(b, c.Fence, 10)
	}
	return b
}

// parseCount parses the format of text.
func parseCount(text string) (Count, error) {
	views, rest, _ := strings.Cut(text, " ")
	writer, fence, fenced := strings.Cut(rest, " ")
	v, wrongViews := strconv.ParseInt(views, 10, 64)
	w, wrongWriter := strconv.ParseUint(writer, 10, 64)
	c := Count{Views: v, Writer: history.ID(w)}
	var wrongFence error
	if fenced {
		c.Fence, wrongFence = strconv.ParseInt(fence, 10, 64)
	}
	if err := cmp.Or(wrongViews, wrongWriter, wrongFence); err != nil {
		return Count{}, fmt.Errorf("page views %.40q: %w", text, err)
	}
	return c, nil
}
