package harness

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Job is a plan that was checked.
type Job struct {
	Plan         Plan
	Combinations []Combination
	// Command is the command that repeats one run.
	Command func(Combination) string
	// Progress is told what goes on; it may be called from one goroutine at a time and must not block.
	Progress func(Event)

	server topologies.Server
}

// Event is a sign of life of a job.
type Event struct {
	Combination Combination
	Number, Of  int
	Phase       Phase
	Live        results.Live // while the workload runs
	Took        time.Duration
	Folder      string // of a run that was saved
}

// Phase is what a job is doing.
type Phase string

// The phases.
const (
	Starting Phase = "starting"
	Running  Phase = "running"
	Saved    Phase = "saved"
)

// embeddedLabel marks every run on the in-process stand-in.
const embeddedLabel = "embedded: functional only; its latencies and costs say nothing about Redis"

// cleanTimeout bounds what is done after a run, when nobody waits for it any more.
const cleanTimeout = 10 * time.Second

// Run carries the job out, one combination after the other. When stop is done the run in hand is finished early
// and saved as partial; when ctx is done it is called off. An error says what could not be carried out; the runs
// before it are returned all the same.
func (j *Job) Run(ctx, stop context.Context) ([]results.Run, error) {
	var runs []results.Run
	for i, c := range j.Combinations {
		if stop.Err() != nil {
			break
		}
		tell := func(e Event) {
			e.Combination, e.Number, e.Of = c, i+1, len(j.Combinations)
			j.Progress(e)
		}
		run, err := j.one(ctx, stop, c, tell)
		if run != nil {
			runs = append(runs, *run)
		}
		if err != nil && (stop.Err() == nil || run != nil) {
			return runs, fmt.Errorf("%s with lock %s: %w", c.Topology.Name, c.Lock.Name, err)
		}
	}
	return runs, nil
}

// stage is everything a run needs.
type stage struct {
	job      *Job
	combo    Combination
	tell     func(Event)
	topology *topologies.Topology
	store    *topologies.Topology // of the counter; nil if it has none of its own
	clients  []redis.UniversalClient
	sites    []redis.UniversalClient
	traffic  topologies.Traffic
	counter  workload.Counter
	locks    []locks.Lock
	pages    []workload.Page
}

func (j *Job) one(ctx, stop context.Context, c Combination, tell func(Event)) (run *results.Run, err error) {
	s := &stage{job: j, combo: c, tell: tell}
	tell(Event{Phase: Starting})
	defer func() { err = errors.Join(err, s.close()) }()
	start := time.Now()
	if err := s.up(stop); err != nil {
		return nil, err
	}
	tell(Event{Phase: Running, Took: time.Since(start)})
	return s.run(ctx, stop)
}

func (s *stage) up(ctx context.Context) (err error) {
	o := topologies.Options{Server: s.job.server, Profile: s.job.Plan.Profile}
	if s.topology, err = s.combo.Topology.Up(ctx, o); err != nil {
		return err
	}
	for _, site := range s.topology.Sites {
		s.sites = append(s.sites, s.client(site, &s.traffic))
	}
	if err := s.openCounter(ctx, o); err != nil {
		return err
	}
	s.pages = workload.Pages("hammerlock:", s.job.Plan.Workload.Keys)
	return s.openLocks()
}

func (s *stage) client(site *topologies.Site, t *topologies.Traffic) redis.UniversalClient {
	c := site.Client(topologies.ClientOptions{Traffic: t})
	s.clients = append(s.clients, c)
	return c
}

func (s *stage) openCounter(ctx context.Context, o topologies.Options) (err error) {
	switch s.job.Plan.Counter {
	case MemoryCounter:
		s.counter = workload.NewMemoryCounter()
	case TopologyCounter:
		s.counter = workload.NewRedisCounter(s.client(s.topology.Sites[0], nil))
	default:
		spec, _ := topologies.Find("single")
		if s.store, err = spec.Up(ctx, o); err != nil {
			return fmt.Errorf("store of the counter: %w", err)
		}
		s.counter = workload.NewRedisCounter(s.client(s.store.Sites[0], nil))
	}
	return nil
}

func (s *stage) openLocks() error {
	process := &locks.Process{}
	for i := range s.job.Plan.Workload.Workers {
		l, err := s.combo.Lock.Open(locks.Env{
			Sites: s.sites, Process: process,
			Rand: mathrand.New(mathrand.NewPCG(s.job.Plan.Workload.Seed, uint64(i)|1<<32)),
		})
		if err != nil {
			return fmt.Errorf("open the lock of worker %d: %w", i, err)
		}
		s.locks = append(s.locks, l)
	}
	return nil
}

func (s *stage) close() error {
	var errs []error
	for _, l := range s.locks {
		errs = append(errs, l.Close())
	}
	for _, c := range s.clients {
		errs = append(errs, c.Close())
	}
	for _, t := range []*topologies.Topology{s.topology, s.store} {
		if t != nil {
			errs = append(errs, t.Close())
		}
	}
	return errors.Join(errs...)
}

// run lets the workers loose and makes a record of it.
func (s *stage) run(ctx, stop context.Context) (*results.Run, error) {
	p := &s.job.Plan
	started := time.Now()
	run := s.record(started)
	folder, err := results.OpenFolder(p.Out, run.Name, started)
	if err != nil {
		return nil, err
	}
	plan := p.Workload
	plan.End = p.Warmup + p.Duration
	crew := workload.Crew{Plan: plan, Locks: s.locks, Counter: s.counter, Pages: s.pages}
	watch := s.watch(ctx, &crew, folder)
	due := crew.Run(ctx, stop)
	load, cost := watch.finish()

	if stop.Err() != nil {
		run.Partial = context.Cause(stop).Error()
	}
	left := due.Unfinished(watch.meter.NeverBegun)
	run.Arrivals = results.Arrivals{Due: due.Begun + due.Skipped + left, Begun: due.Begun, Skipped: due.Skipped, Unfinished: left}
	watch.meter.Summarize(run, load)
	run.Cost = cost.per(watch.meter.Finished())
	tally, err := s.tally(ctx, watch.meter.Stores)
	if err != nil {
		return nil, errors.Join(err, folder.Discard())
	}
	run.Views = results.Views{Acknowledged: tally.Acknowledged, Unknown: tally.Unknown, Final: tally.Final, Lost: tally.Lost()}
	run.Verdicts = []checker.Verdict{tally.Verdict()}
	dir, err := folder.Commit(run)
	if err != nil {
		return run, err
	}
	s.tell(Event{Phase: Saved, Folder: dir})
	return run, nil
}

// tally reads the counter when all workers have gone.
func (s *stage) tally(ctx context.Context, stores results.Stores) (checker.Tally, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	t := checker.Tally{Acknowledged: stores.Acknowledged, Unknown: stores.Unknown}
	for _, page := range s.pages {
		c, err := s.counter.Load(ctx, page.Views)
		if err != nil {
			return t, fmt.Errorf("read the counter at the end: %w", err)
		}
		t.Final += c.Views
	}
	return t, nil
}

func (s *stage) folderName(start time.Time) string {
	return strings.Join([]string{start.UTC().Format("20060102-150405"), s.combo.Topology.Name, s.combo.Lock.Name,
		strings.ToLower(rand.Text()[:6])}, "-")
}

// record fills in what is known without measuring.
func (s *stage) record(started time.Time) *results.Run {
	p, w := &s.job.Plan, &s.job.Plan.Workload
	r := &results.Run{
		Name: s.folderName(started), Started: started.UTC(), Command: s.job.Command(s.combo),
		Topology: s.combo.Topology.Name, Lock: s.combo.Lock.Name, Counter: p.Counter, Faults: []string{},
		Config: results.Config{
			Workers: w.Workers, Processes: 1, Keys: w.Keys, Popularity: string(w.Popularity), Rate: w.Rate,
			Spread: string(w.Arrivals), Seed: w.Seed, TTL: int64(w.TTL), Hold: int64(w.Hold), Think: int64(w.Think),
			Wait: int64(w.Wait), Retry: int64(w.Retry), Warmup: int64(p.Warmup), Duration: int64(p.Duration),
		},
		Settings: s.topology.Settings, Client: topologies.ClientSettings(), Environment: environment(),
	}
	if s.job.server.Embedded() {
		r.Label = embeddedLabel
	}
	return r
}

// lanesFor makes a lane for each worker. Together they have room for what is recorded between two visits of the
// reader, with plenty to spare.
func lanesFor(clock *history.Clock, workers int, wake chan<- struct{}) []*history.Lane {
	slots := 1 << 13
	for slots > 1<<8 && slots*workers > 1<<14 {
		slots /= 2
	}
	lanes := make([]*history.Lane, workers)
	for i := range lanes {
		lanes[i] = history.NewLane(clock, i, int32(i), slots, wake)
	}
	return lanes
}
