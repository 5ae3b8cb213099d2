package harness

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"hammerlock/explore"
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
	// LeftOut has lines for the user about topologies and faults that are not used, with the reasons.
	LeftOut []string
	// NotRun lists scenarios that do not apply. Run adds those that it skipped, for example for lack of time.
	NotRun []results.NotRun
	// Earlier maps the name of a lock to time that it has already used, before Run, from the time budget of its first
	// topology.
	Earlier map[string]time.Duration
	// Command returns the command line that repeats one run; nil = unknown.
	Command func(Combination) string
	// Progress receives events, one at a time. It must not block. It may be nil.
	Progress func(Event)
	// Watched adds snapshots and controls to the events, which a dashboard needs. Set it before Run.
	Watched bool
	// Kept receives the directory of each saved run, one call at a time. It may be nil.
	Kept func(dir string)
	// Killed receives the directory of each run of a killed process whose history was found, one call at a time. It
	// may be nil.
	Killed func(dir string)
	// Hopeless receives the measurements so far, once a second. If it returns a reason other than "", the run ends
	// early. It may be nil.
	Hopeless func(*results.Run) string
	// Enough receives each run, one at a time. After it returns true, no further run begins. It may be nil.
	Enough func(*results.Run) bool
	// Warm keeps servers running for later runs and jobs; nil = each run starts its own servers.
	Warm *Warm

	telling sync.Mutex            // guards Progress, Kept and Killed
	watched map[int][]results.Run // number of a combination -> runs that watched a service's programs beside it
	begun   time.Time
	ended   int
	counted time.Duration // expected time of all combinations that have ended
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
	// Steps has the steps of the start so far, the latest last. It is set in watched jobs only.
	Steps []measure.Step
	// Said is a line for the user about a watched program: its servers, or facts that cannot be observed. Most events
	// have none.
	Said string
	// Snapshot is the data for a dashboard. It is set in watched jobs only, while the workload runs. Controls are
	// sent once, at the start.
	Snapshot *measure.Snapshot
	// Locks returns the measurements of a watched program's locks at the time of the call. It is sent once, when the
	// run has started. Any goroutine may call it.
	Locks    func() measure.LockState
	Controls *measure.Controls
	Explored *Exploration // set in all events of an exploration, which has no measurements; nil in those of a run
	Took     time.Duration
	Folder   string       // directory of a saved run
	Run      *results.Run // record of a saved run
}

// Exploration is the state of an exploration: its progress and, when it has ended, its result.
type Exploration struct {
	explore.Progress
	Result *explore.Report
}

// Stage is what a job is doing.
type Stage string

const (
	Starting Stage = "starting"
	Running  Stage = "running"
	Judging  Stage = "judging"
	Saved    Stage = "saved"
)

// Run makes all runs of the job. It takes one pair of lock and topology after the other; the scenarios of a pair may
// run in parallel. If stop ends, runs in progress end early and are saved as partial. If ctx ends, they are
// cancelled. The result has the runs in the order of the combinations. The error is not nil if a run could not be
// made.
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
			b.err = j.Warm.Close() // the servers that are kept do not suit the next topology
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

// keepWatched keeps the runs that watched a service's programs while a combination ran.
func (j *Job) keepWatched(number int, all ...results.Run) {
	j.telling.Lock()
	defer j.telling.Unlock()
	if j.watched == nil {
		j.watched = map[int][]results.Run{}
	}
	j.watched[number] = append(j.watched[number], all...)
}

// Only returns a new job with a single combination of this job.
func (j *Job) Only(number int) *Job {
	return &Job{Plan: j.Plan, Combinations: slices.Clone(j.Combinations[number : number+1]), Command: j.Command,
		Progress: j.Progress,
		Kept:     j.Kept, Killed: j.Killed, Warm: j.Warm}
}

// starts is the usual time that servers and workers need to start.
const starts = 500 * time.Millisecond

// lasts returns the expected time of a combination, including its start.
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

// count fills in the progress of the job in an event. A repeated run does not count a second time.
func (j *Job) count(e *Event) {
	if e.Stage == Saved && len(e.Combination.Before) == 0 {
		j.ended++
		j.counted += e.Combination.lasts()
	}
	if e.Ended = j.ended; j.ended == 0 || j.begun.IsZero() { // a run from Prepare does not belong to a job in progress
		return
	}
	rest := -j.counted
	for i := range j.Combinations {
		rest += j.Combinations[i].lasts()
	}
	e.Left = time.Duration(float64(time.Since(j.begun)) * float64(max(rest, 0)) / float64(j.counted))
}

// The method named makes one run of a combination. The result longer is the factor by which a repetition must be
// longer; 0 = no repetition is needed. It sends on started when the run has begun to work, or when the run could not
// begin.
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
		return nil, 0, finish(false) // the run was cancelled before it began
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

// release keeps the servers in warm for the next run. It shuts them down instead if the run may have broken them.
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

// Prepare starts the servers and workers for the job's first combination. Run.Do then makes the run.
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

// keptSteps is the number of steps of a start that are kept, about as many as a screen can show.
const keptSteps = 40

// steps returns a function that adds a step to the start of the run, and sends an event with all steps so far. Any
// goroutine may call that function.
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

// report passes an event to Job.Progress, and the directory of a saved run to Job.Kept.
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

// foundKilled passes directories of runs whose processes were killed to Job.Killed.
func (j *Job) foundKilled(dirs []string) {
	j.telling.Lock()
	defer j.telling.Unlock()
	for _, dir := range dirs {
		if j.Killed != nil {
			j.Killed(dir)
		}
	}
}

// Close shuts the servers down.
func (x *Run) Close() error { return x.deployment.Close() }
