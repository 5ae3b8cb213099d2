package harness

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/faults"
	"hammerlock/internal/crew"
	"hammerlock/internal/measure"
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
	// Watched makes events carry snapshots and controls. It must be set before Run.
	Watched bool
	// Kept is told the directory of every run that was saved, before the next one begins; nil = nobody asks.
	Kept func(dir string)
	// Warm keeps deployments up for the next job that is given it; nil if every run has one of its own.
	Warm *Warm

	server topologies.Server
}

// Event is a sign of life of a job.
type Event struct {
	Combination Combination
	Number, Of  int
	Phase       Phase
	Live        measure.Live // while the workload runs
	// Of a job that is watched: while the workload runs; the controls come once, when it begins.
	Snapshot *measure.Snapshot
	Controls *measure.Controls
	Took     time.Duration
	Folder   string // of a run that was saved
}

// Phase is what a job is doing.
type Phase string

// The phases.
const (
	Starting Phase = "starting"
	Running  Phase = "running"
	Judging  Phase = "judging"
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
	store    store
	crew     crew.Crew
	pages    []workload.Page
}

func (j *Job) one(ctx, stop context.Context, c Combination, tell func(Event)) (run *results.Run, err error) {
	s := &stage{job: j, combo: c, tell: tell}
	tell(Event{Phase: Starting})
	defer func() { err = errors.Join(err, s.close()) }()
	j.Warm.lend(s)
	defer func() { j.Warm.takeBack(ctx, s, err == nil) }()
	start := time.Now()
	if err := s.up(stop); err != nil {
		return nil, err
	}
	tell(Event{Phase: Running, Took: time.Since(start)})
	return s.run(ctx, stop)
}

func (s *stage) up(ctx context.Context) (err error) {
	p := &s.job.Plan
	o := topologies.Options{Server: s.job.server, Profile: p.Profile}
	if s.topology == nil {
		if s.topology, err = s.combo.Topology.Up(ctx, s.breakable(o)); err != nil {
			return err
		}
	}
	if err := s.openStore(ctx, o); err != nil {
		return fmt.Errorf("store of the counter: %w", err)
	}
	s.pages = workload.Pages(crew.LockPrefix, p.Workload.Keys)
	orders := crew.Orders{
		Plan: p.Workload, Lock: s.combo.Lock.Name, Judged: p.Verify, From: p.Warmup, To: p.Warmup + p.Duration,
		Retries: p.LibraryRetries, Server: s.job.server, Counter: s.store.orders, Steered: s.job.Watched,
	}
	orders.Plan.End = p.Warmup + p.Duration
	for _, site := range s.topology.Sites {
		orders.Sites = append(orders.Sites, site.Access())
	}
	if !s.job.spread() {
		s.crew, err = crew.Local(orders, s.store.inMemory())
		return err
	}
	lanes := crew.Lanes(p.Workload.Workers, s.combo.Lock.Claims)
	s.crew, err = crew.Spread(ctx, orders, lanes, p.Processes, s.topology.Spawn)
	return err
}

// breakable adds what the plan of faults needs. What nobody breaks is measured without it.
func (s *stage) breakable(o topologies.Options) topologies.Options {
	var needs faults.Needs
	for _, step := range s.combo.Steps {
		needs = needs.Or(step.Fault.Needs)
	}
	o.Links, o.Clock = needs.Links, needs.Clock
	if needs.Durable {
		o.Durable = topologies.SyncEverySecond
	}
	return o
}

// spread tells whether the workers live in processes of their own.
func (j *Job) spread() bool { return j.Plan.Processes > 1 }

func (s *stage) close() error {
	var errs []error
	if s.crew != nil {
		errs = append(errs, s.crew.Close())
	}
	errs = append(errs, s.store.close())
	if s.topology != nil {
		errs = append(errs, s.topology.Close())
	}
	return errors.Join(errs...)
}

// run lets the workers loose and makes a record of it.
func (s *stage) run(ctx, stop context.Context) (_ *results.Run, err error) {
	started := time.Now()
	run := s.record(started)
	folder, err := results.OpenFolder(s.job.Plan.Out, run.Name)
	if err != nil {
		return nil, err
	}
	watch, err := s.watch(ctx, run, folder)
	if err != nil {
		return nil, errors.Join(err, folder.Discard())
	}
	report, cost, err := s.work(ctx, stop, watch)
	if stop.Err() != nil {
		run.Partial = context.Cause(stop).Error()
	} else if err != nil {
		run.Partial = err.Error()
	}
	if err = errors.Join(err, watch.tape.close(run.Partial)); err != nil {
		return nil, errors.Join(err, s.giveUp(folder))
	}
	s.fill(run, watch, &report, cost)
	if err := s.verdicts(ctx, run, watch, folder); err != nil {
		return nil, errors.Join(err, s.giveUp(folder))
	}
	dir, err := folder.Commit(run)
	if err != nil {
		return run, err
	}
	if s.job.Kept != nil {
		s.job.Kept(dir)
	}
	s.tell(Event{Phase: Saved, Folder: dir})
	return run, nil
}

// work lets the workers work, breaks what is to be broken meanwhile, and looks at what is left.
func (s *stage) work(ctx, stop context.Context, w *watch) (crew.Report, cost, error) {
	ending, end := context.WithCancel(stop)
	defer end()
	defer time.AfterFunc(w.to-w.clock.Now(), end).Stop()
	w.breaker.start(ctx, ending)
	if w.public != nil {
		s.tell(Event{Phase: Running, Controls: s.controls(ctx, ending, w)})
	}
	report, err := s.crew.Run(ctx, stop)
	end()
	err = errors.Join(err, w.breaker.wait())
	if err == nil && s.job.Plan.Verify {
		err = s.aftermath(ctx, w.own)
	}
	return report, w.finish(), err
}

// verdicts judges the run: by its history if it was kept, by its sums otherwise.
func (s *stage) verdicts(ctx context.Context, run *results.Run, w *watch, folder *results.Folder) error {
	tally, err := s.tally(ctx, w.meter.Stores)
	if err != nil {
		return err
	}
	run.Views = results.Views{Acknowledged: tally.Acknowledged, Unknown: tally.Unknown, Final: tally.Final,
		Lost: tally.Lost(), Fenced: w.meter.Stores.Fenced}
	if !s.job.Plan.Verify {
		run.Verdicts = []checker.Verdict{tally.Verdict()}
		return nil
	}
	s.tell(Event{Phase: Judging})
	run.Verdicts, err = judge(folder.Path(results.HistoryFile))
	return err
}

// giveUp removes what was written of a run that could not be carried out, but not a history: what it tells of how
// things went wrong is all there is.
func (s *stage) giveUp(folder *results.Folder) error {
	if s.job.Plan.Verify {
		return folder.Leave()
	}
	return folder.Discard()
}

// fill writes what was measured into the record.
func (s *stage) fill(run *results.Run, w *watch, r *crew.Report, c cost) {
	for _, due := range r.Unfinished {
		w.meter.NeverBegun(due)
	}
	left := int64(len(r.Unfinished))
	run.Arrivals = results.Arrivals{Due: r.Begun + r.Skipped + left, Begun: r.Begun, Skipped: r.Skipped, Unfinished: left}
	load := r.Load
	load.OpenLoop = s.job.Plan.Workload.Open()
	for _, l := range w.lanes {
		load.Stalls += int64(l.Stalls())
	}
	w.meter.Summarize(run, load)
	run.Interactive = w.breaker.meddled.Load()
	run.Cost = c.per(w.meter.Finished(), r.RoundTrips, s.combo.Lock.Sites)
}

// tally reads the counter when all workers have gone.
func (s *stage) tally(ctx context.Context, stores measure.Stores) (checker.Tally, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	t := checker.Tally{Acknowledged: stores.Acknowledged, Unknown: stores.Unknown}
	for _, page := range s.pages {
		c, err := s.store.counter.Load(ctx, page.Views)
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
			Workers: w.Workers, Processes: p.Processes, Keys: w.Keys, Popularity: string(w.Popularity), Rate: w.Rate,
			Spread: string(w.Arrivals), Seed: w.Seed, TTL: int64(w.TTL), Hold: int64(w.Hold), Think: int64(w.Think),
			Wait: int64(w.Wait), Retry: int64(w.Retry), Warmup: int64(p.Warmup), Duration: int64(p.Duration),
		},
		Settings: s.topology.Settings, Client: topologies.ClientSettings(), Environment: environment(),
	}
	for _, step := range s.combo.Steps {
		r.Faults = append(r.Faults, step.String())
	}
	if s.job.server.Embedded() {
		r.Label = embeddedLabel
	}
	return r
}
