package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/internal/deployment"
	"hammerlock/internal/measure"
	"hammerlock/results"
	"hammerlock/topologies"
)

// Job is a plan that was checked.
type Job struct {
	Plan         Plan
	Combinations []Combination
	// LeftOut says in lines which topologies, and which faults of --fault auto, are not planned, and why.
	LeftOut []string
	// NotRun are the scenarios that do not apply, and, after Run, those that the budget had no time for.
	NotRun []results.NotRun
	// Earlier is what locks, by name, have had of their budget before Run. It counts on the first topology of each.
	Earlier map[string]time.Duration
	// Command is the command that repeats one run.
	Command func(Combination) string
	// Progress is told what goes on; it may be called from one goroutine at a time and must not block.
	Progress func(Event)
	// Watched makes events carry snapshots and controls. It must be set before Run.
	Watched bool
	// Kept is told the directory of every run that was saved, before the next one begins; nil = nobody asks.
	Kept func(dir string)
	// Hopeless is asked once a second, of what was measured so far, why the run should end now; empty = it goes on. nil = nobody
	// wants to end one.
	Hopeless func(*results.Run) string
	// Warm keeps deployments up for the next job that is given it; nil if every run has one of its own.
	Warm *Warm

	server topologies.Server
}

// Warm keeps servers up between runs.
type Warm = deployment.Warm

// Event is a sign of life of a job.
type Event struct {
	Combination Combination
	Number, Of  int
	Stage       Stage
	Live        measure.Live // while the workload runs
	// Of a job that is watched: what was done so far to bring it up, the latest last.
	Steps []measure.Step
	// Of a job that is watched: while the workload runs; the controls come once, when it begins.
	Snapshot *measure.Snapshot
	Controls *measure.Controls
	Took     time.Duration
	Folder   string // of a run that was saved
	Run      *results.Run
}

// Stage is what a job is doing.
type Stage string

// The stages.
const (
	Starting Stage = "starting"
	Running  Stage = "running"
	Judging  Stage = "judging"
	Saved    Stage = "saved"
)

// Run carries the job out, one combination after the other. When stop is done the run in hand is finished early
// and saved as partial; when ctx is done it is called off. An error says what could not be carried out; the runs
// before it are returned all the same.
func (j *Job) Run(ctx, stop context.Context) (runs []results.Run, err error) {
	b := budget{whole: j.Plan.Budget}
	for i := range j.Combinations {
		c := &j.Combinations[i]
		switch {
		case stop.Err() != nil:
			return runs, nil
		case b.failed:
			j.NotRun = append(j.NotRun, c.notRun("--fail-fast: a run before it failed"))
			continue
		}
		if b.begins(c) {
			if err := j.again(ctx, stop, &b, runs); err != nil {
				return runs, err
			}
			b.begin(c, j.Earlier[c.Lock.Name])
			delete(j.Earlier, c.Lock.Name)
		} else if c.Scenario.Name != "" && b.spent(c.Plan.Duration) {
			n := c.notRun(fmt.Sprintf("the %v of --budget were over", b.whole))
			n.Unasked = true
			j.NotRun = append(j.NotRun, n)
			continue
		}
		run, longer, err := j.named(ctx, stop, i)
		if run != nil {
			runs = append(runs, *run)
			b.failed = j.Plan.FailFast && run.Failed()
			if longer > 0 {
				b.open = append(b.open, question{i, len(runs) - 1, longer})
			}
		}
		if err != nil {
			return runs, err
		}
	}
	return runs, j.again(ctx, stop, &b, runs)
}

// budget is how much time the scenarios of a lock on a topology have left, and which of them have not seen enough.
type budget struct {
	whole  time.Duration
	of     string // topology and lock
	since  time.Time
	open   []question
	failed bool // nothing is to begin any more
}

// question is a combination without an answer, its run, and how many times longer the next one has to be.
type question struct{ number, run, longer int }

// begins tells whether a combination is the first of its lock on its topology.
func (b *budget) begins(c *Combination) bool { return c.Topology.Name+" "+c.Lock.Name != b.of }

func (b *budget) begin(c *Combination, earlier time.Duration) {
	b.of, b.since, b.open = c.Topology.Name+" "+c.Lock.Name, time.Now().Add(-earlier), nil
}

// spent tells whether what takes so long can no longer end in time.
func (b *budget) spent(duration time.Duration) bool { return time.Since(b.since)+duration > b.whole }

// longest is how many times longer than planned all times of a scenario can become.
const longest = 8

// again asks once more what is undecided, each time with the next seed and longer, as often as the plan allows and, for scenarios, as
// far as there is time: what they were too short for is no answer. If a scenario was undecided because the machine or a program was
// slow, all its times grow by as much; otherwise it only goes on for twice as long.
func (j *Job) again(ctx, stop context.Context, b *budget, runs []results.Run) error {
	for range j.Plan.Attempts - 1 {
		var open []question
		for _, q := range b.open {
			c := &j.Combinations[q.number]
			by := max(q.longer, 2)
			if c.Scenario.Name != "" {
				by = min(by, int((b.whole-time.Since(b.since))/c.Plan.Duration))
			}
			if by < 2 || stop.Err() != nil || b.failed {
				continue
			}
			_, why := runs[q.run].Safety()
			c.Earlier = append(c.Earlier, runs[q.run].Name)
			c.again(by, q.longer > 1, why)
			run, longer, err := j.named(ctx, stop, q.number)
			if run != nil {
				runs[q.run] = *run
				b.failed = j.Plan.FailFast && run.Failed()
				if longer > 0 {
					open = append(open, question{q.number, q.run, longer})
				}
			}
			if err != nil {
				return err
			}
		}
		b.open = open
	}
	return nil
}

// again makes the plan of another run, so many times longer: all its times, or its duration alone. Why says what was wrong with the one before.
func (c *Combination) again(by int, all bool, why string) {
	c.Before = append(c.Before, why)
	before := max(c.Stretched, 1)
	if to := min(before*by, longest); all && to > before {
		by, c.Stretched, c.Steps = to/before, to/before*before, slices.Clone(c.Steps)
		c.Plan.Workload.Stretch(by)
		for i := range c.Steps {
			c.Steps[i] = c.Steps[i].Stretched(by)
		}
	}
	c.Plan.Repeat(by)
}

// named carries out one combination once; its name is in an error. Longer is how many times longer the run has to be if it is made again:
// 0 = it need not be.
func (j *Job) named(ctx, stop context.Context, number int) (run *results.Run, longer int, err error) {
	c := &j.Combinations[number]
	p, err := j.prepare(stop, number, j.Warm)
	if err != nil && stop.Err() != nil {
		return nil, 0, nil // it was called off before it began
	}
	if err == nil {
		run, err = p.Run(ctx, stop)
		longer, err = p.longer, errors.Join(err, p.release(ctx, j.Warm, err == nil && len(p.incidents) == 0))
	}
	if err != nil {
		err = fmt.Errorf("%s with lock %s: %w", c.Topology.Name, c.Lock.Name, err)
	}
	return run, longer, err
}

// release keeps the servers for the next run, unless they were broken or are in doubt.
func (p *Prepared) release(ctx context.Context, warm *Warm, sound bool) error {
	broken := slices.ContainsFunc(p.combo.Steps, func(s faults.Step) bool {
		e := s.Fault.Effect(p.combo.scene())
		return e.Hit(history.Servers) || e.Hit(history.Clocks)
	})
	if sound && !broken && p.combo.Plan.Service == nil {
		return warm.Keep(ctx, p.deployment)
	}
	return p.Close()
}

// Prepared is a run whose servers are up and whose workers are ready to begin, so that the next run of a show can be
// made ready while one goes on.
type Prepared struct {
	job        *Job
	combo      Combination
	deployment *deployment.Deployment
	since      time.Time // when it began to be made ready
	tell       func(Event)
	incidents  []string // what servers did that no fault had asked for
	longer     int      // how many times longer the run has to be if it is made again; 0 = it need not be
}

// Prepare brings up what the job's first combination needs.
func (j *Job) Prepare(ctx context.Context) (*Prepared, error) { return j.prepare(ctx, 0, nil) }

func (j *Job) prepare(ctx context.Context, number int, warm *Warm) (_ *Prepared, err error) {
	p := &Prepared{job: j, combo: j.Combinations[number], since: time.Now()}
	p.tell = func(e Event) {
		e.Combination, e.Number, e.Of = p.combo, number+1, len(j.Combinations)
		j.Progress(e)
	}
	p.tell(Event{Stage: Starting})
	spec := j.deployment(p.combo)
	if j.Watched {
		spec.Options.Tell = p.steps(p.since)
	}
	if p.deployment, err = warm.Up(ctx, spec); err != nil {
		return nil, err
	}
	p.tell(Event{Stage: Running, Took: time.Since(p.since)})
	return p, nil
}

// keptSteps is how many steps of a start are told: as many as a screen shows.
const keptSteps = 40

// steps returns a function that tells what a start has done so far, and when; any goroutine may call it.
func (p *Prepared) steps(start time.Time) func(doing string) {
	var one sync.Mutex
	var done []measure.Step
	return func(doing string) {
		one.Lock()
		defer one.Unlock()
		done = append(done[max(len(done)+1-keptSteps, 0):], measure.Step{At: time.Since(start), Doing: doing})
		p.tell(Event{Stage: Starting, Steps: slices.Clone(done)})
	}
}

// Close ends the servers.
func (p *Prepared) Close() error { return p.deployment.Close() }
