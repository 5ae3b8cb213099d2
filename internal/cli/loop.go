package cli

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/results"
	"hammerlock/results/compare"
)

// The type series runs several plans, one after the other. It forecasts the time, handles interrupts, ends early when
// there is a reason, and keeps outputs open during all runs.
type series struct {
	e    Env
	o    *options
	root *cobra.Command // root command of the command line that repeats a run
	dir  string         // directory of the saved runs; empty = each plan has its own
	warm *harness.Warm  // keeps servers running between runs; nil = each run starts its own

	runs     int           // number of runs; 0 = unknown in advance, because it depends on results
	about    time.Duration // expected time of all runs
	tells    bool          // the series prints its own progress, so there are no progress lines and no dashboard
	tolerant bool          // after a step that could not be run, the series reports the error and continues
	reports  reports       // reports of its runs so far
	page     func() string // writes the report on all runs at the end, and returns its path; nil = no report
	views    shows         // outputs at a network address
	minutes  shows         // outputs that print a line now and then, without the data of a dashboard
	failure  error         // why the series gave up, set by its steps
	begun    time.Time
	ended    int
}

// step is one plan of a series. The series fills in job, runs and err before the function that yielded the step goes
// on.
type step struct {
	plan  harness.Plan
	title string // printed before it begins
	// The function more changes the job before it runs, and returns whether to run it; nil = run it unchanged.
	more    func(context.Context, *harness.Job) (begins bool)
	instead func(ctx, stop context.Context) (*results.Run, error) // makes the run in another way; nil = run the job

	job  *harness.Job
	runs []results.Run
	err  error
}

// steps yields plans, one after the other. A plan may depend on results of earlier ones. It must return when yield
// returns false.
type steps = iter.Seq[*step]

// newSeries makes a series that saves its runs in a directory of its own. Its servers stay up between runs.
func newSeries(e Env, c *cobra.Command, o *options) *series {
	stamp := time.Now().UTC().Format("20060102-150405.000") + "-" + c.Name()
	return &series{e: e, o: o, root: c.Parent(), dir: filepath.Join(o.plan.Out, stamp), warm: new(harness.Warm),
		tells: true}
}

// carryOut runs all steps, and closes the outputs at the end. Before the first step it calls check, which finds the
// mistakes in the command line.
func (s *series) carryOut(ctx context.Context, sig signals, check func(context.Context) error, all steps) (err error) {
	s.o.writable(s.e, cmp.Or(s.dir, s.o.plan.Out))
	if s.views = s.e.openShows(ctx, s.o); len(s.views) > 0 {
		s.o.inTurn()
	}
	defer func() {
		page := ""
		if s.page != nil {
			page = s.page()
		}
		err = errors.Join(err, s.views.close(ctx, page), s.warm.Close())
	}()
	if err = check(sig.stop); err == nil && s.dir != "" {
		err = os.MkdirAll(s.dir, 0o755)
	}
	if err != nil {
		return err
	}
	if s.runs > 0 {
		s.e.say(s.o, "%s, about %v", human.Quantity(s.runs, "run"), s.about.Round(time.Second))
	}
	s.begun = time.Now()
	for st := range all {
		if err = sig.stop.Err(); err == nil {
			st.err = s.one(ctx, sig, st)
			err = st.err
		}
		if s.ended++; err != nil && s.tolerant && sig.stop.Err() == nil {
			s.e.complain(err)
			err = nil
		}
		failed := slices.ContainsFunc(st.runs, func(r results.Run) bool { return r.Failed() })
		if err != nil || sig.stop.Err() != nil || s.o.plan.FailFast && failed {
			break
		}
	}
	if errors.Is(err, context.Canceled) && sig.stop.Err() != nil {
		err = nil // the exit code reports the interrupt instead
	}
	return errors.Join(err, s.failure)
}

func (s *series) one(ctx context.Context, sig signals, st *step) error {
	if st.title != "" {
		s.e.say(s.o, "%s%s", st.title, left(s.left()))
	}
	if st.instead != nil {
		run, err := st.instead(ctx, sig.stop)
		if run != nil {
			st.runs = []results.Run{*run}
		}
		return err
	}
	if s.dir != "" {
		st.plan.Out = s.dir
	}
	var err error
	if st.job, err = st.plan.Check(sig.stop, s.o.Mistakes); err != nil {
		return err
	}
	j := st.job
	j.Command, j.Warm, j.Kept, j.Killed = repeatRun(s.root, j.Plan), s.warm, s.saved, s.e.foundKilled
	if st.more != nil && !st.more(sig.stop, j) {
		return nil
	}
	st.runs, err = s.show(ctx, sig, j)
	return err
}

// saved writes the extra files beside the run that was just saved in dir.
func (s *series) saved(dir string) {
	for _, x := range s.o.runFiles {
		s.e.complain(x.saved(s.o, &s.reports, dir))
	}
}

// The method show runs a job, and sends its events to the outputs of the command. It opens a dashboard or progress
// lines for the job, unless the series prints its own progress.
func (s *series) show(ctx context.Context, sig signals, job *harness.Job) (runs []results.Run, err error) {
	var own shows
	if !s.tells {
		if own, job.Watched, err = s.e.dashboardOrLines(s.o, sig, job); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, own.close(ctx, "")) }()
	}
	job.Watched = job.Watched || len(s.views) > 0
	job.Progress = slices.Concat(own, s.views, s.minutes).tell
	return job.Run(ctx, sig.stop)
}

// inTurn makes runs sequential, because some outputs can show only one run at a time.
func (o *options) inTurn() {
	if o.plan.Jobs > 1 {
		o.Mistake("jobs", "%d: --web and --metrics show one run at a time", o.plan.Jobs)
	}
	o.plan.Jobs = 1
}

// The method left estimates the time that the remaining runs take. It returns 0 if that is unknown.
func (s *series) left() time.Duration {
	if s.ended == 0 || s.runs == 0 {
		return 0
	}
	return time.Since(s.begun) / time.Duration(s.ended) * time.Duration(max(s.runs-s.ended, 0))
}

// foretell prints how many runs follow and how long they should take. The job is repeated the given number of times.
func (s *series) foretell(job *harness.Job, times int) {
	if n := len(job.Combinations) * times; n > 1 {
		s.e.say(s.o, "%s on %s, about %v", human.Quantity(n, "run"), human.List(on(job)),
			(job.Expected() * time.Duration(times)).Round(time.Second))
	}
}

// The method exit returns the exit code for runs that were judged, with its reason.
func (s *series) exit(stop context.Context, runs []results.Run, gates []compare.GateResult, err error) Exit {
	return exit(stop, results.Weigh(judgements(s.dir, runs), nil, "", nil), gates, err)
}

// inARow limits consecutive steps that could not be run. After that many, the rest of their row or series is skipped.
const inARow = 3

func lines(texts []string) error { return errors.New(strings.Join(texts, "\n")) }
