// Package workload has workers that visit pages. A visit takes the page's lock, reads the page-view counter, waits,
// writes the counter and releases the lock. The package records what workers do and judges nothing. It does not know
// the topology, so a worker cannot know what is broken.
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
	"hammerlock/topologies"
)

// Arrivals says how the due times of an open loop are distributed.
type Arrivals string

// The distributions of arrivals.
const (
	Poisson Arrivals = "poisson" // independent visitors: the gaps are exponentially distributed
	Uniform Arrivals = "uniform" // a metronome
)

// AllArrivals lists the distributions.
var AllArrivals = []Arrivals{Poisson, Uniform}

// Popularity says how visits are distributed over pages.
type Popularity string

// The popularities.
const (
	Even Popularity = "even"
	Zipf Popularity = "zipf" // page k is visited in proportion to 1/k
)

// AllPopularities lists the distributions over pages.
var AllPopularities = []Popularity{Even, Zipf}

// Shape describes a load: what the workers do, and how fast. Times on the run's clock count from the start of the
// warm-up.
type Shape struct {
	Workers    int
	Keys       int
	Bare       bool // lock names are irregular, as in real applications: see Pages
	Popularity Popularity
	TTL        time.Duration // of each lease
	Hold       time.Duration // time between load and store
	// each Hold or Term is drawn from a range of this half-width, as a share of its mean; 0 = no spread
	Spread float64
	Term   time.Duration // for this long a visit loads, waits and stores repeatedly, as a leader does; 0 = once
	// closed loop: each worker always visits the same page, like a candidate in a leader election
	Faithful   bool
	Think      time.Duration // closed loop: pause of a worker between two visits
	Wait       time.Duration // patience: a visit gives up this long after its due time
	Hurry      time.Duration // closed loop: patience of every second worker, those with odd numbers; 0 = as Wait
	Retry      time.Duration // mean backoff between two tries; each is drawn from 0.5 to 1.5 of it
	Extend     time.Duration // a visit extends its lease to this length before it stores; 0 = it does not extend
	Extensions int           // how often a visit waits and extends before it stores; 0 = once
	// a visit extends its lease early and late, to shorter and longer leases, and stays for most of the last one
	Varied       bool
	HeedDeadline bool // a holder whose deadline has passed does not store; it still releases
	StopAtEnd    bool // a visit in progress stops waiting at the End
	CancelOneIn  int  // one in this many visits is cancelled at a random moment; 0 = none
	Shared       bool // all workers of a process use one lock object
	TwoTTLs      bool // every second worker requests leases that are twice as long
	// Tick makes a closed loop of scheduled tasks: at each tick of its clock a worker visits the next page; 0 = off.
	Tick  time.Duration
	Apart time.Duration // largest difference between the workers' clocks
	// in every second process, the wall clock is ahead by this; in the second half of the run, it is behind by this
	Skew      time.Duration
	Reenter   int           // one in this many visits acquires a reentrant lock again; 0 = every visit
	Reentries int           // up to this many re-entries in a row; 0 = one
	Readers   float64       // share of the visits that only read, with a readers-writer lock
	Upgrade   int           // one in this many readers upgrades to writer and stores, if the lock can do that; 0 = none
	Permits   int           // largest number of permits that a visit requests from a semaphore; 0 = one
	Visits    int           // closed loop: a worker ends after this many visits; 0 = at the End
	Rounds    int           // closed loop: number of rounds of load, each followed by a pause; 0 = no rounds
	Rest      time.Duration // length of the pause after each round, in which no visit begins
	Rate      float64       // open loop: visits per second of all workers, on average; 0 = closed loop
	Arrivals  Arrivals
	Stretches []Stretch       // parts of the run with loads of their own; nil = the load is constant
	Trace     []time.Duration // open loop: due times in ascending order, used in place of Rate
	End       time.Duration   // end of the load: no visit is due from here on
	Seed      uint64

	// The workers may be divided among processes. This process has the workers from First to First+Workers-1 and, in an
	// open loop, every Parts'th visit, beginning with number Part. Parts 0 = it has all.
	First int
	Part  int
	Parts int
}

// Stretch multiplies all times of the load by a number, and divides the rate by it.
func (s *Shape) Stretch(by int) {
	for _, d := range []*time.Duration{&s.TTL, &s.Hold, &s.Term, &s.Think, &s.Wait, &s.Hurry, &s.Retry, &s.Extend,
		&s.Tick, &s.Apart, &s.Skew, &s.Rest} {
		*d *= time.Duration(by)
	}
	s.Rate /= float64(by)
}

// Open tells whether this is an open loop: visits are due by a schedule, whether or not a worker is free.
func (s *Shape) Open() bool { return s.Rate > 0 }

// Workers runs the workers of one process.
type Workers struct {
	Shape Shape
	Clock *history.Clock
	// one lane (a stream of recorded operations) for each worker, then the lanes for the second page of visits, and so
	// on: see Lanes
	Lanes   []*history.Lane
	Locks   []locks.Lock // by worker
	Counter Counter
	// Counting says how a visit counts. The Counter must support it: see Does.
	Counting locks.Counting
	Pages    []Page             // by key
	Gate     *Gate              // lets faults stop workers; nil = no fault does that
	Tempo    *Tempo             // changes the rate of an open loop; nil = it stays as planned
	Claims   history.Claims     // what the lock claims to offer; the workload uses all of it
	Secrets  topologies.Secrets // passwords that must not appear in error texts
	// a checker will read the history, so each call of a visit is recorded
	Judged bool
	// Patience is how long a lock call may stay open after the last visit was due. Then it is cancelled, and later
	// abandoned. 0 = no limit.
	Patience time.Duration
	// Reopen makes a new lock object for the successor of a worker that died. The argument is the number of the worker
	// in this process, from 0. Nil = no worker can die.
	Reopen func(worker int) (locks.Lock, error)
}

// Page holds the names of the keys of one page.
type Page struct {
	Lock  string // the lock's key
	Views string // the counter's key
}

// Pages names the pages of a run. Braces keep the keys of a page in one slot of a cluster, and no name is a prefix
// of another. If bare is true, names look as in applications. Then page-1 is a prefix of page-10, one name in five
// has a hash tag, and one in five has 150 bytes with unusual characters.
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

// Due counts the visits that were due. It includes those whose patience ended before a worker was free and, in an open
// loop, those that still waited for a worker at the end.
type Due struct {
	Begun   int64
	Skipped int64
	Err     error // why a worker that died has no successor
	// Said has the text of the first error of each kind; its keys are "kind outcome reason". Refusals are left out.
	Said map[string]string
	// Hung lists the lock calls that had to be cancelled, Panics those that panicked.
	Hung   []history.Hung
	Panics []history.Breakdown

	arrivals *arrivals
	ended    time.Duration
}

// Unfinished returns how many visits still waited for a worker at the end. It calls the function show with the due
// time of each.
func (d *Due) Unfinished(show func(due time.Duration)) int64 {
	return d.arrivals.remaining(d.ended, show)
}

// Run lets the workers visit until the shape's End, or until stop ends. Visits in progress are finished, unless ctx
// ends as well.
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

// carryOut runs a worker. If its lock panics, only this worker ends. A panic in the suite's own code is an error of the
// run.
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

// numbers lists the worker numbers of the worker's lanes. Its operations are recorded under these numbers.
func (w *worker) numbers() (all []int32) {
	for i := w.number; i < len(w.group.Lanes); i += w.shape.Workers {
		all = append(all, w.group.Lanes[i].Worker())
	}
	return all
}

// within makes two contexts for the worker's lock calls. It returns the context for visits; w.cleanup is the
// context for releases. Both stay open when the worker ends, because a lock may have started goroutines under them
// that serve other workers too. The function w.callOff cancels both.
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
