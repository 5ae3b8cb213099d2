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

// series is a number of runs that belong together. All series share one loop. This loop handles the forecast, the
// remaining time, interrupts, reasons to end early, and the outputs that are open during the runs.
type series struct {
	e    Env
	o    *options
	root *cobra.Command // the root command, for command lines that repeat a run
	dir  string         // directory of the saved runs; empty = each plan has its own
	warm *harness.Warm  // keeps servers running between runs; nil = each run starts its own

	runs     int           // number of runs; 0 = it depends on their results
	about    time.Duration // expected time of all runs
	tells    bool          // the series prints its own lines about its runs, so progress and dashboard are off
	tolerant bool          // a step that cannot be carried out is reported, and the series continues
	reports  reports       // reports of its runs so far
	page     func() string // makes the report of all runs at the end, and returns its path; nil = there is none
	views    shows         // outputs at an address
	minutes  shows         // outputs that print a line from time to time, and need no snapshots
	failure  error         // error that prevents further steps
	begun    time.Time
	ended    int
}

// step is one plan of a series. After the yield, it has the results.
type step struct {
	plan  harness.Plan
	title string // printed before it begins
	// prepares its job, and returns whether to run it; may be nil
	more    func(context.Context, *harness.Job) (begins bool)
	instead func(ctx, stop context.Context) (*results.Run, error) // makes the run without a job; nil = a job is run

	job  *harness.Job
	runs []results.Run
	err  error
}

// steps yields plans, which may depend on the results of earlier steps. It ends when yield returns false.
type steps = iter.Seq[*step]

// newSeries makes a series with its own directory, and with servers that are kept running.
func newSeries(e Env, c *cobra.Command, o *options) *series {
	stamp := time.Now().UTC().Format("20060102-150405.000") + "-" + c.Name()
	return &series{e: e, o: o, root: c.Parent(), dir: filepath.Join(o.plan.Out, stamp), warm: new(harness.Warm),
		tells: true}
}

// carryOut runs all steps, and closes the outputs. Before anything starts, it calls check, which finds all errors of
// the command line.
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
		err = nil // the interrupt is the reason
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

// saved writes the outputs that belong beside a run.
func (s *series) saved(dir string) {
	for _, x := range s.o.runFiles {
		s.e.complain(x.saved(s, dir))
	}
}

// show runs a job, and shows it in the outputs of the command. Unless the series reports its runs itself, these
// include the dashboard, or lines.
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

// inTurn makes runs sequential, for outputs that can show only one run.
func (o *options) inTurn() {
	if o.plan.Jobs > 1 {
		o.Mistake("jobs", "%d: --web and --metrics show one run at a time", o.plan.Jobs)
	}
	o.plan.Jobs = 1
}

// left returns the estimated time for the remaining runs; 0 if unknown.
func (s *series) left() time.Duration {
	if s.ended == 0 || s.runs == 0 {
		return 0
	}
	return time.Since(s.begun) / time.Duration(s.ended) * time.Duration(max(s.runs-s.ended, 0))
}

// foretell prints the number of runs and their expected time, for a job that is repeated the given number of times.
func (s *series) foretell(job *harness.Job, times int) {
	if n := len(job.Combinations) * times; n > 1 {
		s.e.say(s.o, "%s on %s, about %v", human.Quantity(n, "run"), human.List(on(job)),
			(job.Expected() * time.Duration(times)).Round(time.Second))
	}
}

// on returns the names of a job's topologies.
func on(job *harness.Job) (names []string) {
	for i := range job.Combinations {
		if name := job.Combinations[i].Topology.Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// exit returns how a command ends whose runs were judged.
func (s *series) exit(stop context.Context, runs []results.Run, gates []compare.GateResult, err error) Exit {
	return exit(stop, results.Weigh(judgements(s.dir, runs), nil, "", nil), gates, err)
}

// inARow is the number of consecutive steps that may fail to run before their row or series is given up.
const inARow = 3

// lines makes one error of texts, with a line for each.
func lines(texts []string) error { return errors.New(strings.Join(texts, "\n")) }
