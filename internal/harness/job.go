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

// Job is a checked plan that is ready to run.
type Job struct {
	Plan         Plan
	Combinations []Combination
	// LeftOut has a line for each topology, or fault of --fault auto, that is not used, with the reason.
	LeftOut []string
	// NotRun has the scenarios that do not apply. After Run, it also has those for which no time was left.
	NotRun []results.NotRun
	// Earlier maps each lock to the part of its time budget that was used before Run. It counts for the lock's first
	// topology.
	Earlier map[string]time.Duration
	// Command returns the command line that repeats a run; may be nil.
	Command func(Combination) string
	// Progress is called with events, never in parallel. It must not block; may be nil.
	Progress func(Event)
	// Watched adds snapshots and controls to the events, for a dashboard. Set it before Run.
	Watched bool
	// Kept is called with the directory of each saved run, never in parallel; may be nil.
	Kept func(dir string)
	// Killed is called, like Kept, with the directory of a run whose process was killed and whose history was found;
	// may be nil.
	Killed func(dir string)
	// Hopeless is called once a second with the measurements so far; may be nil. If it returns a reason, the run ends.
	Hopeless func(*results.Run) string
	// Enough is called with each run, never in parallel; may be nil. After it returns true, no further run begins.
	Enough func(*results.Run) bool
	// Warm keeps deployments running for later runs and jobs; nil = every run starts its own.
	Warm *Warm

	telling sync.Mutex            // guards Progress, Kept and Killed
	watched map[int][]results.Run // number of a combination -> watches of programs during it
	begun   time.Time
	ended   int
	counted time.Duration // expected time of all runs that have ended
}

type Warm = deployment.Warm

type Event struct {
	Combination Combination
	Number, Of  int
	Ended       int           // number of combinations that have ended
	Left        time.Duration // expected time of the remaining combinations
	Stage       Stage
	Name        string       // name of the run; empty until it begins
	Live        measure.Live // measurements so far, while the workload runs
	// In a watched job: the steps of the start so far, the latest last.
	Steps []measure.Step
	// Said describes the servers of a program under test, and the facts that cannot be observed. It is empty in other
	// events.
	Said string
	// In a watched job, while the workload runs. Controls are sent once, at the start.
	Snapshot *measure.Snapshot
	// Locks returns the measurements of a program's locks so far. The function is sent once, when the run has started.
	// Any goroutine may call it.
	Locks    func() measure.LockState
	Controls *measure.Controls
	Took     time.Duration
	Folder   string       // directory of a saved run
	Run      *results.Run // record of a saved run
}

// Stage is the current activity of a job.
type Stage string

const (
	Starting Stage = "starting"
	Running  Stage = "running"
	Judging  Stage = "judging"
	Saved    Stage = "saved"
)

// Run runs the job. It takes one lock and topology after the other, with parallel scenarios for each. When stop ends,
// the current runs end early and are saved as partial. When ctx ends, they are cancelled. It returns the runs in the
// order of the combinations, and an error if any run could not be made.
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
			b.err = j.Warm.Close() // the next batch needs servers of another topology
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

// Only returns a job with one combination of this job.
func (j *Job) Only(number int) *Job {
	return &Job{Plan: j.Plan, Combinations: slices.Clone(j.Combinations[number : number+1]), Command: j.Command,
		Progress: j.Progress,
		Kept:     j.Kept, Killed: j.Killed, Warm: j.Warm}
}

// starts is the usual time until servers and workers are ready.
const starts = 500 * time.Millisecond

// lasts returns the expected time of a combination.
func (c *Combination) lasts() time.Duration { return c.Plan.Warmup + c.Plan.Duration + starts }

// Expected returns the expected time of the job on an idle machine.
func (j *Job) Expected() (all time.Duration) {
	for i := range j.Combinations {
		all += j.Combinations[i].lasts()
	}
	if n := j.jobs(); n > 0 {
		return all / time.Duration(min(n, len(j.Combinations)))
	}
	return all / time.Duration(runtime.GOMAXPROCS(0)+1)
}

// count writes the progress of the job into an event. Repeated runs do not count again.
func (j *Job) count(e *Event) {
	if e.Stage == Saved && len(e.Combination.Before) == 0 {
		j.ended++
		j.counted += e.Combination.lasts()
	}
	if e.Ended = j.ended; j.ended == 0 || j.begun.IsZero() { // a run from Prepare is not part of a job's progress
		return
	}
	rest := -j.counted
	for i := range j.Combinations {
		rest += j.Combinations[i].lasts()
	}
	e.Left = time.Duration(float64(time.Since(j.begun)) * float64(max(rest, 0)) / float64(j.counted))
}

// named makes one run of a combination. It returns the factor by which a repetition must be longer; 0 = no repetition
// is needed. It sends on started when the run has begun to work, or when it cannot begin.
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
		return nil, 0, finish(false) // it was cancelled before it began
	}
	begun := err == nil
	if begun {
		run, err = x.Do(ctx, stop)
		j.keepWatched(number, x.cuts...)
		longer, err = x.longer, errors.Join(err, x.release(ctx, j.Warm, err == nil && len(x.incidents) == 0))
	}
	err = errors.Join(err, finish(begun))
	if err != nil {
		err = fmt.Errorf("%s with lock %s: %w", c.Topology.Name, c.Lock.Name, err)
	}
	return run, longer, err
}

// release keeps the servers for the next run, unless the run may have broken them.
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

// Prepare starts the servers and workers for the job's first combination.
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

// keptSteps is the number of steps of a start that are kept: those that fit on a screen.
const keptSteps = 40

// steps returns a function for the steps of the start. With each step, it publishes all steps so far. Any goroutine
// may call it.
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

// report passes an event to Progress and Kept.
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

// foundKilled reports runs whose process was killed and whose history was found.
func (j *Job) foundKilled(dirs []string) {
	j.telling.Lock()
	defer j.telling.Unlock()
	for _, dir := range dirs {
		if j.Killed != nil {
			j.Killed(dir)
		}
	}
}

// Close takes the servers down.
func (x *Run) Close() error { return x.deployment.Close() }
