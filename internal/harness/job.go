package harness

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/internal/deployment"
	"hammerlock/internal/measure"
	"hammerlock/results"
)

// Job is a plan that was checked.
type Job struct {
	Plan         Plan
	Combinations []Combination
	// LeftOut says, line by line, which topologies and which faults of --fault auto are not planned, and why.
	LeftOut []string
	// NotRun lists the scenarios that do not apply and, after Run, those for which the budget had no time.
	NotRun []results.NotRun
	// Earlier is the part of the budget that each lock has used before Run, by name. It is charged on each lock's first
	// topology.
	Earlier map[string]time.Duration
	// Command returns the command that repeats one run; nil = there is none.
	Command func(Combination) string
	// Progress receives events, from one goroutine at a time. It must not block; nil = not wanted.
	Progress func(Event)
	// Watched makes events carry snapshots and controls. It must be set before Run.
	Watched bool
	// Kept receives the directory of every saved run, from one goroutine at a time; nil = not wanted.
	Kept func(dir string)
	// Killed receives the directory of each killed run whose history was found, as Kept does; nil = not wanted.
	Killed func(dir string)
	// Hopeless is called once a second with the measurements so far. It returns why the run should end now, or empty.
	// nil = no run ends early.
	Hopeless func(*results.Run) string
	// Enough is called with each run, by one goroutine. Once it returns true, no further run begins. nil = it never
	// does.
	Enough func(*results.Run) bool
	// Warm keeps deployments running for the next job that has it; nil = every run has its own deployment.
	Warm *Warm

	telling sync.Mutex            // guards Progress, Kept and Killed
	watched map[int][]results.Run // runs that were saved beside a combination, by its number
	begun   time.Time
	ended   int
	counted time.Duration // the expected time of the runs that have ended
}

// Warm keeps servers up between runs.
type Warm = deployment.Warm

// Event reports the progress of a job.
type Event struct {
	Combination Combination
	Number, Of  int
	Ended       int           // how many combinations have ended
	Left        time.Duration // expected time of the others
	Stage       Stage
	Name        string       // of the run; empty until it begins
	Live        measure.Live // while the workload runs
	// In a watched job: the steps of the start so far, the latest last.
	Steps []measure.Step
	// A program's servers, and what cannot be seen of the program, in words; empty in other events.
	Said string
	// In a watched job, while the workload runs; the controls come once, at its begin.
	Snapshot *measure.Snapshot
	// Locks returns the measurements of a program's locks so far. It comes once, when the run has started; any
	// goroutine may call it.
	Locks    func() ([]measure.LockRow, []results.HotLock)
	Controls *measure.Controls
	Took     time.Duration
	Folder   string       // of a saved run
	Run      *results.Run // of a saved run
}

// Stage is the current step of a job.
type Stage string

// The stages.
const (
	Starting Stage = "starting"
	Running  Stage = "running"
	Judging  Stage = "judging"
	Saved    Stage = "saved"
)

// Run carries the job out, one lock on one topology after the other, with scenarios side by side. When stop is done,
// the current runs are ended early and saved as partial; when ctx is done, they are cancelled. An error says what could
// not be carried out. Earlier runs are returned all the same, in the order of the combinations.
func (j *Job) Run(ctx, stop context.Context) (runs []results.Run, err error) {
	ended := ""
	j.begun, j.ended, j.counted = time.Now(), 0, 0
	for from, to := 0, 0; from < len(j.Combinations) && stop.Err() == nil && err == nil; from = to {
		c := &j.Combinations[from]
		for to = from + 1; to < len(j.Combinations) && j.Combinations[to].of() == c.of(); to++ {
		}
		b := batch{Job: j, since: time.Now().Add(-j.Earlier[c.Lock.Name]), room: room{jobs: j.jobs()},
			runs: map[int]*results.Run{}, ended: ended}
		delete(j.Earlier, c.Lock.Name)
		if from > 0 && j.Combinations[from-1].Topology.Name != c.Topology.Name {
			b.err = j.Warm.Close() // servers of another topology are no longer needed
		}
		b.all(ctx, stop, from, to)
		for n := from; n < to; n++ {
			if run := b.runs[n]; run != nil {
				runs = append(runs, *run)
			}
		}
		for n := from; n < to; n++ {
			runs = append(runs, j.watched[n]...)
		}
		ended, err = b.ended, b.err
	}
	return runs, err
}

// keepWatched keeps runs that were saved beside a combination.
func (j *Job) keepWatched(number int, all ...results.Run) {
	j.telling.Lock()
	defer j.telling.Unlock()
	if j.watched == nil {
		j.watched = map[int][]results.Run{}
	}
	j.watched[number] = append(j.watched[number], all...)
}

// Only returns the job for one of its combinations.
func (j *Job) Only(number int) *Job {
	return &Job{Plan: j.Plan, Combinations: slices.Clone(j.Combinations[number : number+1]), Command: j.Command,
		Progress: j.Progress,
		Kept:     j.Kept, Killed: j.Killed, Warm: j.Warm}
}

// starts is the typical time until servers and workers are ready.
const starts = 500 * time.Millisecond

// lasts is the expected time of a combination.
func (c *Combination) lasts() time.Duration { return c.Plan.Warmup + c.Plan.Duration + starts }

// Expected is the expected time of the job on an idle machine.
func (j *Job) Expected() (all time.Duration) {
	for i := range j.Combinations {
		all += j.Combinations[i].lasts()
	}
	if n := j.jobs(); n > 0 {
		return all / time.Duration(min(n, len(j.Combinations)))
	}
	return all / time.Duration(runtime.GOMAXPROCS(0)+1)
}

// count writes the progress of the job into an event. A repeated run was counted already.
func (j *Job) count(e *Event) {
	if e.Stage == Saved && len(e.Combination.Before) == 0 {
		j.ended++
		j.counted += e.Combination.lasts()
	}
	if e.Ended = j.ended; j.ended == 0 || j.begun.IsZero() { // a single prepared run has no others
		return
	}
	rest := -j.counted
	for i := range j.Combinations {
		rest += j.Combinations[i].lasts()
	}
	e.Left = time.Duration(float64(time.Since(j.begun)) * float64(max(rest, 0)) / float64(j.counted))
}

// named carries out one combination once; an error names it. Longer is the factor by which a repetition must be longer;
// 0 = no repetition is needed. It sends on started when the run has begun to work, or cannot.
func (j *Job) named(ctx, stop context.Context, number int, started chan<- struct{}) (run *results.Run, longer int,
	err error) {
	c := &j.Combinations[number]
	finish, err := j.startWatch(ctx, stop, number)
	if err != nil {
		started <- struct{}{}
		return nil, 0, err
	}
	x, err := j.prepare(stop, number, j.Warm)
	started <- struct{}{}
	if err != nil && stop.Err() != nil {
		return nil, 0, nil // the run was cancelled before it began
	}
	if err == nil {
		run, err = x.Do(ctx, stop)
		j.keepWatched(number, x.cuts...)
		longer, err = x.longer, errors.Join(err, x.release(ctx, j.Warm, err == nil && len(x.incidents) == 0))
	}
	err = errors.Join(err, finish())
	if err != nil {
		err = fmt.Errorf("%s with lock %s: %w", c.Topology.Name, c.Lock.Name, err)
	}
	return run, longer, err
}

// release keeps the servers for the next run, unless they were broken or are in doubt.
func (x *Run) release(ctx context.Context, warm *Warm, sound bool) error {
	broken := slices.ContainsFunc(x.combo.Steps, func(s faults.Step) bool {
		e := s.Fault.Effect(x.combo.scene())
		return e.Hit(history.Servers) || e.Hit(history.Clocks)
	})
	if sound && !broken && !x.combo.Topology.Can().Lock && x.deployment.Program == nil {
		return warm.Keep(ctx, x.deployment)
	}
	return x.Close()
}

// Prepare starts what the job's first combination needs.
func (j *Job) Prepare(ctx context.Context) (*Run, error) { return j.prepare(ctx, 0, nil) }

func (j *Job) prepare(ctx context.Context, number int, warm *Warm) (_ *Run, err error) {
	x := &Run{job: j, combo: j.Combinations[number], since: time.Now()}
	x.tell = func(e Event) {
		if e.Combination, e.Number, e.Of = x.combo, number+1, len(j.Combinations); x.run != nil {
			e.Name = x.run.Name
		}
		j.report(e)
	}
	x.tell(Event{Stage: Starting})
	spec := j.deployment(x.combo)
	if spec.Program != nil {
		spec.Program.Say = func(line string) { x.tell(Event{Stage: Starting, Said: line}) }
	}
	if j.Watched {
		spec.Options.Tell = x.steps(x.since)
	}
	if x.deployment, err = warm.Up(ctx, spec); err != nil {
		return nil, err
	}
	up := Event{Stage: Running, Took: time.Since(x.since)}
	if p := x.deployment.Program; p != nil {
		up.Locks = p.LockRows
	}
	x.tell(up)
	return x, nil
}

// keptSteps is the number of start-up steps that are kept: as many as a screen shows.
const keptSteps = 40

// steps returns a function that returns the steps of a start so far, with their times; any goroutine may call it.
func (x *Run) steps(start time.Time) func(doing string) {
	var one sync.Mutex
	var done []measure.Step
	return func(doing string) {
		one.Lock()
		defer one.Unlock()
		done = append(done[max(len(done)+1-keptSteps, 0):], measure.Step{At: time.Since(start), Doing: doing})
		x.tell(Event{Stage: Starting, Steps: slices.Clone(done)})
	}
}

// report hands an event on to the watchers of the job.
func (j *Job) report(e Event) {
	j.telling.Lock()
	defer j.telling.Unlock()
	if j.count(&e); j.Progress != nil {
		j.Progress(e)
	}
	if e.Stage == Saved && j.Kept != nil {
		j.Kept(e.Folder)
	}
}

// foundKilled reports the histories of killed runs.
func (j *Job) foundKilled(dirs []string) {
	j.telling.Lock()
	defer j.telling.Unlock()
	for _, dir := range dirs {
		if j.Killed != nil {
			j.Killed(dir)
		}
	}
}

// Close ends the servers.
func (x *Run) Close() error { return x.deployment.Close() }
