package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hammerlock/checker"
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
	// LeftOut says in lines which faults of --fault auto are not planned, and why.
	LeftOut []string
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

// Warm keeps servers up between runs.
type Warm = deployment.Warm

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

// Run carries the job out, one combination after the other. When stop is done the run in hand is finished early
// and saved as partial; when ctx is done it is called off. An error says what could not be carried out; the runs
// before it are returned all the same.
func (j *Job) Run(ctx, stop context.Context) ([]results.Run, error) {
	var runs []results.Run
	for i := range j.Combinations {
		if stop.Err() != nil {
			break
		}
		run, err := j.settled(ctx, stop, i)
		if run != nil {
			runs = append(runs, *run)
		}
		if err != nil {
			c := &j.Combinations[i]
			return runs, fmt.Errorf("%s with lock %s: %w", c.Topology.Name, c.Lock.Name, err)
		}
	}
	return runs, nil
}

// settled carries out one combination. A scenario that has not seen enough is run once more, twice as long and with the
// next seed: what it was too short for is no answer.
func (j *Job) settled(ctx, stop context.Context, number int) (*results.Run, error) {
	run, err := j.one(ctx, stop, number)
	if c := &j.Combinations[number]; err == nil && run != nil && c.Scenario.Name != "" && stop.Err() == nil {
		if status, _ := run.Safety(); status != checker.Inconclusive {
			return run, nil
		}
		c.Plan.Workload.Seed++
		c.Plan.Duration *= 2
		return j.one(ctx, stop, number)
	}
	return run, err
}

// one carries out one combination.
func (j *Job) one(ctx, stop context.Context, number int) (*results.Run, error) {
	p, err := j.prepare(stop, number, j.Warm)
	if err != nil && stop.Err() != nil {
		return nil, nil // it was called off before it began
	}
	if err != nil {
		return nil, err
	}
	run, err := p.Run(ctx, stop)
	return run, errors.Join(err, p.release(ctx, j.Warm, err == nil && len(p.ailed) == 0))
}

// release keeps the servers for the next run, unless they were broken or are in doubt.
func (p *Prepared) release(ctx context.Context, warm *Warm, sound bool) error {
	broken := slices.ContainsFunc(p.combo.Steps, func(s faults.Step) bool {
		e := s.Fault.Effect(p.combo.scene())
		return e.Hit(history.Servers) || e.Hit(history.Clocks)
	})
	if sound && !broken {
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
	tell       func(Event)
	ailed      []string // what servers did that no fault had asked for
}

// Prepare brings up what the job's first combination needs.
func (j *Job) Prepare(ctx context.Context) (*Prepared, error) { return j.prepare(ctx, 0, nil) }

func (j *Job) prepare(ctx context.Context, number int, warm *Warm) (_ *Prepared, err error) {
	p := &Prepared{job: j, combo: j.Combinations[number]}
	p.tell = func(e Event) {
		e.Combination, e.Number, e.Of = p.combo, number+1, len(j.Combinations)
		j.Progress(e)
	}
	p.tell(Event{Phase: Starting})
	start := time.Now()
	if p.deployment, err = warm.Up(ctx, j.deployment(p.combo)); err != nil {
		return nil, err
	}
	p.tell(Event{Phase: Running, Took: time.Since(start)})
	return p, nil
}

// Close ends the servers.
func (p *Prepared) Close() error { return p.deployment.Close() }
