// Package crew runs the workers of a run, in this process or in child processes that act as instances of an
// application. It collects their records in lanes.
package crew

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/internal/driver"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Orders tell the workers of a process what to do. They can be sent to another process: they name the lock and the
// counter, and the rest is plain data.
type Orders struct {
	Shape    workload.Shape
	Lock     locks.Spec `json:"-"`
	Server   topologies.Server
	Sites    []topologies.Access
	Topology string
	Counter  Counter
	Process  int
	// Judged means that a checker will read the history. So all operations that it needs are recorded, and time stamps
	// are unique.
	Judged   bool
	From, To time.Duration // the measured period
	Retries  bool          // keep the client library's automatic retries
	Slots    int           // number of slots in each lane
	Steered  bool          // the rate of an open loop may change during the run
	// Clock is the wrong wall clock that the lock's program gets in every second process; nil = none.
	Clock    *topologies.ClientClock
	Prefix   string
	Foreign  bool          // the servers are not the suite's own, so every key must have the prefix
	Patience time.Duration // see workload.Workers
	// Before has the arguments that precede Command when a worker process is started; may be nil.
	Before []string `json:"-"`
}

// Counter tells where page views are counted.
type Counter struct {
	Spec   workload.CounterSpec `json:"-"`
	Access *topologies.Access   // access to its server; nil if it has none
	File   string               // path of its file; empty if it has none
}

// Resolve looks up the lock and the counter by name. It returns false if either does not exist.
func (o *Orders) Resolve(known Catalogue, lock, counter string) bool {
	for _, s := range known.Locks {
		if s.Name == lock {
			o.Lock = s
		}
	}
	for _, s := range known.Counters {
		if s.Name == counter {
			o.Counter.Spec = s
		}
	}
	return o.Lock.Name != "" && o.Counter.Spec.Name != ""
}

// lanes returns the number of lanes of the workers. A worker has lanes for visits, and another lane if leases are
// renewed in the background.
func (o *Orders) lanes() int {
	n := workload.Lanes(&o.Lock.Claims)
	if o.Lock.Claims.Renews {
		n++
	}
	return n * o.Shape.Workers
}

// Numbers returns the numbers under which the operations of the workers from `from` to `to`-1 are recorded. A worker
// has one number for each page of a visit.
func (o *Orders) Numbers(from, to int) (all []int32) {
	for page := range workload.Lanes(&o.Lock.Claims) {
		for w := from; w < to; w++ {
			all = append(all, int32(page*o.Shape.Workers+w))
		}
	}
	return all
}

// writer returns the number of the worker that writes a lane.
func (o *Orders) writer(lane, workers int) int32 {
	if lane < workload.Lanes(&o.Lock.Claims)*workers {
		return int32(lane)
	}
	return int32(lane % workers)
}

// extras returns the number of additional lanes of a process: those for heartbeats (the argument), and one for pings
// if the lock has a program.
func (o *Orders) extras(heart int) int {
	if o.Lock.Program != nil {
		return heart + 1
	}
	return heart
}

// Lanes returns the number of all lanes if the workers are in the given number of processes.
func (o *Orders) Lanes(processes int) int { return o.lanes() + processes*o.extras(1) }

// Report is the report of a process after its workers have ended.
type Report struct {
	Begun, Skipped int64
	Unfinished     []time.Duration // due times of visits that still waited for a worker
	Load           results.Usage
	RoundTrips     []Trips           // one entry for each process
	Fleet          *results.Fleet    // machines of the workers; nil = this machine
	Lost           string            // the machines that were lost, and when; empty if none was
	Said           map[string]string // kind of error -> text of the first such error
	Error          string            // error of the workers; empty if there was none
	Driver         *Driven           // measurements of the lock's program; nil if it has none
	Hung           []history.Hung    // lock calls that had to be cancelled
	Crashes        []history.Breakdown
	Wear           []history.Wear // resources of the process after each pause between rounds of load
	CPU            time.Duration  // CPU time of the lock's process during the measurement
}

// Trips is the number of round trips that a process's lock clients made between two times.
type Trips struct {
	Count    int64
	From, To time.Duration
}

// Trouble returns an error for each lock call that did not return, and for each crash. Such an error prevents a
// verdict. It returns nil if there were none.
func (r *Report) Trouble() error {
	var errs []error
	for _, h := range r.Hung {
		errs = append(errs, fmt.Errorf("a call of the lock by worker %d has not returned until it was called off at %v",
			h.Worker, h.CalledOff))
	}
	for _, b := range r.Crashes {
		errs = append(errs, fmt.Errorf("%s: %s", b.Text, strings.Join(b.Said, " | ")))
	}
	return errors.Join(errs...)
}

func (r *Report) fail(err error) {
	if err = errors.Join(r.err(), err); err != nil {
		r.Error = err.Error()
	}
}

func (r *Report) err() error {
	if r.Error == "" {
		return nil
	}
	return errors.New(r.Error)
}

// team has the workers of this process, with everything that they need.
type team struct {
	orders  Orders
	process *locks.Process
	sites   []redis.UniversalClient
	places  []*topologies.Site
	clients []redis.UniversalClient
	traffic topologies.Traffic
	line    topologies.Line // connects to all servers, and can be cut
	crew    workload.Workers
	counter workload.Counter // the counter, if this process opened it
	extra   []*history.Lane  // indexed by worker: the lane for renewals in the background
	driver  *driver.Process  // the lock's program; nil if it has none
	pings   *history.Lane    // lane for the pauses of the lock's program
	hung    bool             // a lock call has not returned, so closing the locks may block
}

// open makes the clients and starts the lock's program. The locks, lanes and clock are set when the run begins.
func (o Orders) open(ctx context.Context, counter workload.Counter) (t *team, err error) {
	t = &team{orders: o, process: &locks.Process{}}
	var secrets topologies.Secrets
	for _, a := range o.Sites {
		site := a.Site().Over(&t.line)
		t.places = append(t.places, site)
		_, sentinels := site.SentinelLogin()
		secrets.Add(site.Password())
		secrets.Add(sentinels)
		if c := t.client(site, &t.traffic); c != nil {
			t.sites = append(t.sites, c)
		}
	}
	t.crew = workload.Workers{
		Shape: o.Shape, Counter: counter, Counting: o.Lock.Counting,
		Pages: workload.Pages(o.Prefix, o.Shape.Keys, o.Shape.Bare), Reopen: t.reopen,
		Claims: o.Lock.Claims, Judged: o.Judged, Secrets: secrets, Patience: o.Patience,
	}
	if counter == nil {
		if err := t.openCounter(); err != nil {
			return nil, errors.Join(err, t.close())
		}
	}
	if !workload.Does(t.crew.Counter, o.Lock.Counting) {
		return nil, errors.Join(fmt.Errorf("lock %s: counter %s cannot do without a lock", o.Lock.Name,
			o.Counter.Spec.Name), t.close())
	}
	if err := t.startDriver(ctx); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (t *team) openCounter() (err error) {
	o := &t.orders.Counter
	env := workload.CounterEnv{File: o.File}
	if o.Access != nil {
		env.Site = o.Access.Site().Over(&t.line)
		env.Client = t.client(env.Site, nil)
	}
	t.counter, err = o.Spec.Open(env)
	t.crew.Counter = t.counter
	return err
}

func (t *team) client(site *topologies.Site, traffic *topologies.Traffic) redis.UniversalClient {
	o := topologies.ClientOptions{Source: t.orders.Process + 1, Traffic: traffic,
		LibraryRetries: t.orders.Retries && traffic != nil}
	if t.orders.Judged && t.orders.Process%2 == 1 {
		o.Protocol = 3 // services that share a lock need not speak the same version of RESP
	}
	c := site.Client(o)
	if c != nil {
		t.clients = append(t.clients, c)
	}
	return c
}

// begin gives the workers their clock and lanes, and opens the locks. The lanes for visits come first, then those for
// renewals, in the order of the board.
func (t *team) begin(clock *history.Clock, lanes []*history.Lane, gate *workload.Gate, tempo *workload.Tempo) error {
	n := t.orders.Shape.Workers
	visits := n * workload.Lanes(&t.orders.Lock.Claims)
	t.crew.Clock, t.crew.Lanes, t.crew.Gate = clock, lanes[:visits], gate
	if t.orders.Steered {
		t.crew.Tempo = tempo
	}
	t.extra = lanes[visits:]
	t.crew.Locks = make([]locks.Lock, n)
	for i := range n {
		if t.orders.Shape.Shared && i > 0 {
			t.crew.Locks[i] = t.crew.Locks[0]
			continue
		}
		l, err := t.reopen(i)
		if err != nil {
			return fmt.Errorf("open the lock of worker %d: %w", t.orders.Shape.First+i, err)
		}
		t.crew.Locks[i] = l
	}
	return nil
}

func (t *team) reopen(worker int) (locks.Lock, error) {
	e := locks.Env{
		Sites: t.sites, Places: t.places, Source: t.orders.Process + 1, Server: t.orders.Server, Process: t.process,
		Pause: t.crew.Pause(worker),
		Rand:  rand.New(rand.NewPCG(t.orders.Shape.Seed, uint64(t.orders.Shape.First+worker)|1<<32)),
	}
	if t.orders.Foreign {
		e.Within = t.orders.Prefix
	}
	if t.orders.Lock.Claims.Renews {
		e.Renewals = t.extra[worker]
	}
	l, err := t.orders.Lock.Open(e)
	if err != nil {
		return nil, err
	}
	if err := t.orders.Lock.Offers(l); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// run lets the workers work, and measures the resources of this process.
func (t *team) run(ctx, stop context.Context) Report {
	done := make(chan struct{})
	measured := make(chan Report, 1)
	go func() { measured <- t.measure(done) }()
	worn := make(chan []history.Wear, 1)
	go func() { worn <- t.wear(done) }()
	ctx, stop, driven := t.drive(ctx, stop)
	due := t.crew.Run(ctx, stop)
	close(done)
	r := <-measured
	r.Wear = <-worn
	r.Begun, r.Skipped, r.Said, r.Hung, r.Crashes = due.Begun, due.Skipped, due.Said, due.Hung, due.Panics
	for i := range r.Crashes {
		r.Crashes[i].Process = int16(t.orders.Process)
	}
	t.hung = slices.ContainsFunc(r.Hung, func(h history.Hung) bool { return h.GivenUp > 0 })
	driven(&r)
	r.fail(due.Err)
	due.Unfinished(func(d time.Duration) { r.Unfinished = append(r.Unfinished, d) })
	return r
}

// measure reads the used resources at the start and at the end of the measurement.
func (t *team) measure(done <-chan struct{}) Report {
	clock := t.crew.Clock
	type reading struct {
		at    time.Duration
		load  loadSample
		trips int64
		spent time.Duration
	}
	read := func(at time.Duration) (r reading) {
		select {
		case <-time.After(at - clock.Now()):
		case <-done:
		}
		r.at, r.trips = clock.Now(), t.traffic.RoundTrips()
		r.load, r.spent = readAll(clock.Now(), t.clients), t.home().spent()
		return r
	}
	begin := read(t.orders.From)
	end := read(t.orders.To)
	return Report{Load: end.load.since(begin.load), RoundTrips: []Trips{{end.trips - begin.trips, begin.at, end.at}},
		CPU: end.spent - begin.spent}
}

func (t *team) close() error {
	var errs []error
	for i, l := range t.crew.Locks {
		if l != nil && !(t.orders.Shape.Shared && i > 0) && !t.hung {
			errs = append(errs, l.Close())
		}
	}
	t.driver.Close()
	if t.counter != nil {
		errs = append(errs, t.counter.Close())
	}
	for _, c := range t.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
