// Package workload lets workers visit pages. A visit takes the page's lock, reads the page-view counter, stays for a
// while, writes the counter and releases the lock. The package records operations and judges none. It does not know the
// topology, so a worker cannot know what is broken.
package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// Arrivals is the distribution of an open loop's visits in time.
type Arrivals string

// The distributions of arrivals.
const (
	Poisson Arrivals = "poisson" // independent visitors: exponential gaps
	Uniform Arrivals = "uniform" // a metronome
)

// AllArrivals lists the spreads.
var AllArrivals = []Arrivals{Poisson, Uniform}

// Popularity is the distribution of visits over pages.
type Popularity string

// The popularities.
const (
	Even Popularity = "even"
	Zipf Popularity = "zipf" // page k is visited about 1/k as often as the first one
)

// AllPopularities lists the popularities.
var AllPopularities = []Popularity{Even, Zipf}

// Shape describes a load: what the workers do, and how fast. The clock's zero is the start of the warm-up.
type Shape struct {
	Workers    int
	Keys       int
	Bare       bool // the locks' names have odd forms, as in applications: see Pages
	Popularity Popularity
	TTL        time.Duration // of each lease
	Hold       time.Duration // the stay between load and store
	// half-width of the range from which each hold or term is drawn, as a share of it; 0 = no spread
	Spread     float64
	Term       time.Duration // a visit loads, stays and stores repeatedly for this long, as a leader does; 0 = once
	Faithful   bool          // closed loop: a worker always visits the same page, as a candidate does
	Think      time.Duration // closed loop: the pause between two visits of a worker
	Wait       time.Duration // a visit's patience, from its due time
	Hurry      time.Duration // closed loop: the patience of every second worker, the first included; 0 = Wait
	Retry      time.Duration // mean backoff between two tries; each is drawn from half to one and a half of it
	Extend     time.Duration // a visit extends its lease to this length before it stores; 0 = never
	Extensions int           // how often a visit stays and extends before it stores; 0 = once
	// a visit extends early and late, to shorter and longer leases, and stays until the new end
	Varied       bool
	HeedDeadline bool // a holder whose deadline has passed does not store, but still releases
	StopAtEnd    bool // no stay goes on after the End
	CancelOneIn  int  // one in so many visits is cancelled at a random moment; 0 = none
	Shared       bool // all workers of a process use one object of the lock
	TwoTTLs      bool // every second worker always asks for leases twice as long
	// closed loop: a worker visits each page once, the next one at each tick of its clock; 0 = off
	Tick  time.Duration
	Apart time.Duration // the largest difference between these clocks
	// every second process has a wall clock that is ahead by this, and behind from the middle of the run on
	Skew      time.Duration
	Reenter   int           // one in so many visits acquires a reentrant lock again; 0 = each
	Reentries int           // up to so many re-entries in a row; 0 = one
	Readers   float64       // the share of visits that only read, for a lock that readers share
	Upgrade   int           // one in so many readers becomes the writer and stores, if the lock offers it; 0 = none
	Permits   int           // the most permits that a visit asks for, for a semaphore; 0 = one
	Visits    int           // closed loop: a worker ends after so many visits; 0 = at the End
	Rounds    int           // closed loop: how many rounds of load there are, each followed by a rest; 0 = no rounds
	Rest      time.Duration // the rest at the end of each round, in which no visit begins
	Rate      float64       // visits a second of all workers, on average; 0 = closed loop
	Arrivals  Arrivals
	Stretches []Stretch       // the parts of the run from zero to the End; nil = the load does not change
	Trace     []time.Duration // open loop: due times in ascending order, in place of a rate
	End       time.Duration   // from then on no visit is due
	Seed      uint64

	// The workers may be divided among processes. This one has those from First to First+Workers-1, and every Parts'th
	// visit of an open loop, beginning with number Part. Parts 0 means all.
	First int
	Part  int
	Parts int
}

// Stretch multiplies all times of the load.
func (s *Shape) Stretch(by int) {
	for _, d := range []*time.Duration{&s.TTL, &s.Hold, &s.Term, &s.Think, &s.Wait, &s.Hurry, &s.Retry, &s.Extend,
		&s.Tick, &s.Apart, &s.Skew, &s.Rest} {
		*d *= time.Duration(by)
	}
	s.Rate /= float64(by)
}

// Open tells whether visits are due by a schedule rather than whenever a worker is free.
func (s *Shape) Open() bool { return s.Rate > 0 }

// Workers has what the workers of one process need.
type Workers struct {
	Shape   Shape
	Clock   *history.Clock
	Lanes   []*history.Lane // one lane a worker; then those for the second page of visits, and so on: see Lanes
	Locks   []locks.Lock    // by worker
	Counter Counter
	// Counting is how visits count; the Counter must support it: see Does.
	Counting locks.Counting
	Pages    []Page         // by key
	Gate     *Gate          // where faults stop workers; nil = no such faults
	Tempo    *Tempo         // the speed of an open loop's schedule; nil = as planned
	Claims   history.Claims // the lock's claims; the workload uses what they offer
	Secrets  []string       // passwords that must not appear in the texts of errors
	// a judge reads the history: record everything that a checker needs, and each call of a visit
	Judged bool
	// Patience is how long a call of the lock may stay open after the last visit was due. Then it is cancelled, and
	// later abandoned. 0 = without limit.
	Patience time.Duration
	// Reopen replaces the lock of a worker that died (numbered from 0 in this process); nil if no worker can die.
	Reopen func(worker int) (locks.Lock, error)
}

// Page holds the names of a page's keys.
type Page struct {
	Lock  string // the lock's key
	Views string // the counter's key
}

// Pages names the pages of a run under a prefix. Braces keep a page's keys in one slot of a cluster, and no name is the
// beginning of another. Bare names look as in applications: page-1 is the beginning of page-10, one in five has a hash
// tag, and one in five has 150 bytes, some of them odd.
func Pages(prefix string, n int, bare bool) []Page {
	pages := make([]Page, n)
	for i := range pages {
		name := "page-" + strconv.Itoa(i)
		pages[i] = Page{Lock: prefix + "lock:{" + name + "}", Views: prefix + "views:{" + name + "}"}
		if bare {
			pages[i].Lock = prefix + "lock:" + bareName(name, i%5)
		}
	}
	return pages
}

func bareName(page string, style int) string {
	switch style {
	case 3:
		return "of{" + page + "}:main"
	case 4:
		return strings.ToValidUTF8(strings.Repeat(` Ü*?[^]$%\"'`, 15)[:150-len(page)], "") + page
	}
	return page
}

// Due counts the visits that were due: those that began, those whose patience ended before a worker was free, and, in
// an open loop, those that still waited for a worker when the run ended.
type Due struct {
	Begun   int64
	Skipped int64
	Err     error // why workers that died have no successor
	// Said has the text of the first error of each kind, by "kind outcome reason". Refusals are left out.
	Said map[string]string
	// Hung lists the calls of the lock that had to be cancelled, Panics those that panicked.
	Hung   []history.Hung
	Panics []history.Breakdown

	arrivals *arrivals
	ended    time.Duration
}

// Unfinished counts the visits that still waited for a worker, and passes to show when each was due.
func (d *Due) Unfinished(show func(due time.Duration)) int64 {
	return d.arrivals.remaining(d.ended, show)
}

// Run lets the workers work until the shape's End or until stop is done; visits in progress are finished. When ctx is
// done, calls in progress are cancelled, too.
func (c *Workers) Run(ctx, stop context.Context) Due {
	arrivals := newArrivals(&c.Shape, c.Tempo)
	var follower sync.WaitGroup
	done := make(chan struct{})
	if c.Tempo != nil && c.Shape.Open() {
		follower.Go(func() { arrivals.follow(done) })
	}
	workers := make([]*worker, c.Shape.Workers)
	ended := make(chan int, len(workers))
	for i := range workers {
		workers[i] = c.worker(i, arrivals)
	}
	for i, w := range workers {
		off := w.within(ctx)
		go func() {
			defer func() { ended <- i }()
			w.carryOut(off, stop)
		}()
	}
	hung := c.watch(ctx, stop, workers, ended)
	close(done)
	follower.Wait()
	due := Due{ended: min(c.Clock.Now(), c.Shape.End), arrivals: arrivals, Hung: hung}
	for _, w := range workers {
		if w.panicked.Text != "" {
			due.Panics = append(due.Panics, w.panicked)
		}
		due.Begun += w.begun
		due.Skipped += w.skipped
		due.Err = errors.Join(due.Err, w.err)
		for what, text := range w.said {
			due.Said = Note(due.Said, what, text)
		}
	}
	return due
}

// carryOut runs a worker. If its lock panics, this worker ends and the others go on. A panic elsewhere is an error of
// the run.
func (w *worker) carryOut(ctx, stop context.Context) {
	w.goroutine = goroutine()
	defer func() {
		p, turn := recover(), w.turn.Load()
		switch what := fmt.Sprintf("worker %d panicked: %v", w.shape.First+w.number, p); {
		case p == nil || turn == given:
		case turn%2 == 0:
			w.err = fmt.Errorf("%s\n%s", what, debug.Stack())
		case w.turn.CompareAndSwap(turn, turn+1):
			w.panicked = history.Breakdown{Workers: w.numbers(), At: w.clock.Now(), Text: what,
				Said: ofTheLock(string(debug.Stack()))}
		}
	}()
	w.run(ctx, stop)
}

// numbers lists the worker's numbers in the record.
func (w *worker) numbers() (all []int32) {
	for i := w.number; i < len(w.group.Lanes); i += w.shape.Workers {
		all = append(all, w.group.Lanes[i].Worker())
	}
	return all
}

// within makes the contexts for the worker's calls; callOff cancels them. They stay open when the worker ends, because
// a lock may have started work under them that serves other workers, too.
func (w *worker) within(ctx context.Context) context.Context {
	off, callOff := context.WithCancel(ctx)
	cleanup, callOffCleanup := context.WithCancel(context.WithoutCancel(ctx))
	w.callOff, w.cleanup = func() { callOff(); callOffCleanup() }, cleanup
	return off
}

func (c *Workers) worker(i int, a *arrivals) *worker {
	timer := time.NewTimer(0)
	<-timer.C
	return &worker{
		group: c, shape: &c.Shape, arrivals: a, lane: c.Lanes[i], clock: c.Clock, lock: c.Locks[i], timer: timer,
		number: i, rand: rand.New(rand.NewPCG(c.Shape.Seed, uint64(c.Shape.First+i)+1)),
	}
}
