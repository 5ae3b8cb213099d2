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

// Counter stores the number of views of each page. Load and Store are separate calls: if two workers are between
// them, one update is lost. A Counter is safe for concurrent use.
type Counter interface {
	// Load reads the count of a page. It returns the zero Count if the page was never written.
	Load(ctx context.Context, page string) (Count, error)
	// Store writes the count of a page. A counter with fencing rejects an old token: it returns locks.ErrFenced and
	// writes nothing.
	Store(ctx context.Context, page string, c Count) error
	// Close closes the connections that the counter opened. The caller closes the Client in CounterEnv.
	Close() error
}

// Shown is a Counter with fencing that checks the token at a load too. After a load, it rejects loads and stores of
// earlier holders with locks.ErrFenced: their store would change the value that the loader has read. The counter
// keeps the loader's token minus one, so that the loader itself can still store.
type Shown interface {
	LoadFor(ctx context.Context, page string, fence int64) (Count, error)
}

// Lister is a counter that reads many pages in one round trip.
type Lister interface {
	LoadAll(ctx context.Context, pages []string) ([]Count, error)
}

// Adder is a Counter that adds one view atomically and returns the count that it replaced. Holders of a shared
// lock use it.
type Adder interface {
	Add(ctx context.Context, page string, writer history.ID) (replaced Count, err error)
}

// Atomic is a Counter that counts correctly without a lock. The baselines (visits without a lock) use it.
type Atomic interface {
	Counter
	Adder
	// Transact passes a page's count to the function visit, which may call store once. If another worker has stored
	// in between, store returns locks.ErrConflict. Transact returns the error of visit, or of the load.
	Transact(ctx context.Context, page string, visit func(seen Count, store func(Count) error) error) error
}

// Count is a number of page views and the ID of the operation that wrote it. The ID tells a worker whose store it has
// loaded.
type Count struct {
	Views  int64
	Writer history.ID
	Fence  int64 // fencing token of the worker that wrote it; 0 = the lock has no tokens
}

// AllCounters lists the implementations of Counter.
var AllCounters = []CounterSpec{
	RedisCounter, RedisFenced, topologyStore, topologyFenced, memoryStore, memoryFenced, sqliteStore, sqliteFenced,
	backstopStore,
}

// CounterSpec describes an implementation of Counter.
type CounterSpec struct {
	Name   string
	Doc    string
	Place  Place
	Server topologies.Spec // topology of the counter's own server; the zero Spec = single
	Fenced bool            // the counter claims to reject stores with old fencing tokens
	Broken string          // why the fencing of a deliberately broken counter does not work; empty for the others
	// Open opens the counter. Each worker process opens its own.
	Open func(CounterEnv) (Counter, error)
}

// Place says where a counter stores the counts.
type Place int

// The places.
const (
	OwnServer  Place = iota // on a separate server that no fault affects
	OnTopology              // on the servers under test
	OfService               // in the service under test, which does the counting
	InMemory                // in the memory of one process
	InFile                  // in a file that all worker processes share
)

// ServiceCounter stands for a service under test that counts the views itself.
var ServiceCounter = CounterSpec{Name: "service", Place: OfService}

// CounterEnv has the things that Open needs. The Place of the counter decides which fields are set.
type CounterEnv struct {
	Client redis.UniversalClient // for OwnServer and OnTopology; the caller closes it; nil if the servers are not Redis
	Site   *topologies.Site      // the site that Client connects to
	File   string                // for InFile: the path of the file
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

// Fits returns the reason why the counter does not work with this lock or this number of processes; empty if it does.
func (s CounterSpec) Fits(lock locks.Spec, processes int) string {
	switch {
	case s.Place == InMemory && processes > 1:
		return "the memory of one process counts for one process"
	case s.Fenced && !lock.Claims.Fences:
		return "a fence asks for a token, the lock draws none"
	}
	return ""
}

// text returns a count in the form "views writer", or "views writer fence" if fenced.
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

// parseCount parses the text that Count.text returns.
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
