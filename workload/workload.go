// Package workload lets workers visit pages: each visit takes the page's lock, reads the page-view counter,
// stays for a while, writes the counter and gives the lock back. It records its operations and judges none;
// it does not know what the locks and the counter run on, so a worker cannot know what is broken.
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

// Arrivals says how the visits of an open loop are spread.
type Arrivals string

// The spreads of arrivals.
const (
	Poisson Arrivals = "poisson" // independent visitors: exponential gaps
	Uniform Arrivals = "uniform" // a metronome
)

// AllArrivals lists the spreads.
var AllArrivals = []Arrivals{Poisson, Uniform}

// Popularity says how visits choose their page.
type Popularity string

// The popularities.
const (
	Even Popularity = "even"
	Zipf Popularity = "zipf" // page k is visited about 1/k as often as the first one
)

// AllPopularities lists the popularities.
var AllPopularities = []Popularity{Even, Zipf}

// Shape is the shape of a load: what the workers do, and how fast. The clock's zero is the start of the warm-up.
type Shape struct {
	Workers      int
	Keys         int
	Bare         bool // the names of locks are as people write them: see Pages
	Popularity   Popularity
	TTL          time.Duration // of each lease
	Hold         time.Duration // between load and store
	Spread       float64       // each hold is drawn from Hold less this share of it to Hold and as much more, and so is a term; 0 = all the same
	Term         time.Duration // a visit loads, stays and stores again and again, as a leader does; 0 = once
	Faithful     bool          // closed loop: a worker visits the same page all the time, as a candidate does
	Think        time.Duration // closed loop: between two visits of a worker
	Wait         time.Duration // a visit gives up this long after it was due
	Hurry        time.Duration // closed loop: the patience of every second worker, which comes first; 0 = Wait
	Retry        time.Duration // mean backoff between two tries; each is drawn from half to one and a half of it
	Extend       time.Duration // a visit lengthens its lease to this before it stores; 0 = it does not
	Extensions   int           // how often a visit stays and lengthens its lease before it stores; 0 = once
	Varied       bool          // a visit extends early and late, to shorter and longer leases, and stays to the new end
	HeedDeadline bool          // a holder whose deadline has passed does not store; it gives the lock back all the same
	StopAtEnd    bool          // no stay outlasts the End
	CancelOneIn  int           // one in how many visits has its calls to the lock called off at random; 0 = none
	Shared       bool          // all workers of a process use one object of the lock
	TwoTTLs      bool          // every second worker asks for leases twice as long, and stays so
	Tick         time.Duration // closed loop: a worker visits each page once, the next at each tick of its clock; 0 = off
	Apart        time.Duration // by how much these clocks of workers differ at most
	Skew         time.Duration // the wall clocks of every second process are ahead by so much, and behind from the middle of the run on
	Reenter      int           // one in how many visits takes a reentrant lock again; 0 = each does
	Reentries    int           // it does so up to so many times, one after the other; 0 = once
	Readers      float64       // the share of visits that read, of a lock that readers share
	Upgrade      int           // one in how many of them becomes the writer and stores, if the lock offers it; 0 = none
	Permits      int           // up to so many permits a visit asks for, of a semaphore; 0 = one
	Visits       int           // closed loop: a worker ends after so many; 0 = it goes on until the End
	Rounds       int           // closed loop: how many times the load comes, each followed by a rest; 0 = it goes on
	Rest         time.Duration // the end of each round, in which no visit begins
	Rate         float64       // visits a second over all workers, on average; 0 = closed loop
	Arrivals     Arrivals
	Stretches    []Stretch       // from the zero of the clock to the End, one after the other; nil = the load stays the same
	Trace        []time.Duration // open loop: when each visit is due, ascending, in place of a rate
	End          time.Duration   // no visit is due from then on
	Seed         uint64

	// The workers may be shared out among processes: this one has those from First to First+Workers-1, and every
	// Parts'th visit of an open loop, beginning with number Part. Parts 0 is all.
	First int
	Part  int
	Parts int
}

// Stretch makes all times of the load so many times longer.
func (s *Shape) Stretch(by int) {
	for _, d := range []*time.Duration{&s.TTL, &s.Hold, &s.Term, &s.Think, &s.Wait, &s.Hurry, &s.Retry, &s.Extend,
		&s.Tick, &s.Apart, &s.Skew, &s.Rest} {
		*d *= time.Duration(by)
	}
	s.Rate /= float64(by)
}

// Open tells whether visits are due by a schedule, and not when a worker is free.
func (s *Shape) Open() bool { return s.Rate > 0 }

// Workers is what the workers of one process work with.
type Workers struct {
	Shape   Shape
	Clock   *history.Clock
	Lanes   []*history.Lane // by worker; then those of the second page of their visits, and so on: see Lanes
	Locks   []locks.Lock    // by worker
	Counter Counter
	// Counting is how visits count; the Counter must be able to: see Does.
	Counting locks.Counting
	Pages    []Page         // by key
	Gate     *Gate          // where faults stop workers; nil if there are none
	Tempo    *Tempo         // how fast the schedule of an open loop runs; nil if as planned
	Claims   history.Claims // of the lock: what it offers is used
	Secrets  []string       // passwords, which errors may repeat: they are kept without them
	Judged   bool           // the history is kept: what only a checker asks for is recorded too, and no visit in one
	// Patience is how long a call of the lock may be open when no visit is due any more; then it is called off, and
	// given up at last.
	// 0 = for ever.
	Patience time.Duration
	// Reopen replaces the lock of a worker that died, counted from 0 in this process; nil if none can die.
	Reopen func(worker int) (locks.Lock, error)
}

// Page is what a key stands for in the servers.
type Page struct {
	Lock  string // the lock's key
	Views string // the counter's key
}

// Pages names the pages of a run under a prefix. The braces keep a page's keys in one slot of a cluster, and no name
// begins with another. Bare names of locks are as people write them: page-1 begins page-10, one in five has a tag, and
// one in five has 150 bytes, some of them odd.
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

// Due counts the visits that were due: those that a worker began, those whose patience ended before a worker was
// free, and, in an open loop, those that still waited for a worker when the run ended.
type Due struct {
	Begun   int64
	Skipped int64
	Err     error // workers died and have no successor
	// Said is what the first error of a kind said, by "kind outcome reason": nothing of answers that are part of the
	// game.
	Said map[string]string
	// Hung are the calls of the lock that had to be called off, Panics those that panicked.
	Hung   []history.Hung
	Panics []history.Breakdown

	arrivals *arrivals
	ended    time.Duration
}

// Unfinished counts the visits that still waited for a worker and shows when each was due.
func (d *Due) Unfinished(show func(due time.Duration)) int64 {
	return d.arrivals.remaining(d.ended, show)
}

// Run lets the workers work until the shape's End or until stop is done; visits in progress are finished. When ctx is
// done calls in progress are called off as well.
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

// carryOut runs a worker. A worker whose lock panics ends, and the others go on; a panic outside of the lock is an
// error of the run.
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

// numbers are those that the worker has in the record.
func (w *worker) numbers() (all []int32) {
	for i := w.number; i < len(w.group.Lanes); i += w.shape.Workers {
		all = append(all, w.group.Lanes[i].Worker())
	}
	return all
}

// within makes the contexts of the worker's calls, which callOff ends. Its end does not: a lock may have begun
// something under them that serves other workers, too.
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
