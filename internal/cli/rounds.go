package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"hammerlock/internal/harness"
	"hammerlock/internal/settings"
	"hammerlock/results"
	"hammerlock/results/compare"
	"hammerlock/results/report"
)

// The type rounds runs a plan --count times. Each round uses the next seed.
type rounds struct {
	*series
	c    *cobra.Command
	runs []results.Run
	not  []results.NotRun // scenarios that could not be run, with reasons
	over bool             // no round follows
}

func (e Env) run(ctx context.Context, s signals, c *cobra.Command, o *options) int {
	if o.expect {
		return e.expectations(ctx, s, c, o)
	}
	o.unexpected()
	r := &rounds{series: &series{e: e, o: o, root: c}, c: c}
	r.page = func() string {
		r.reports.close(e, o.plan.Out, report.Unsaved{Explored: o.explored, NotRun: r.not})
		return r.reports.last(o.plan.Out)
	}
	begun, seed := time.Now(), o.plan.Workload.Seed
	err := r.carryOut(ctx, s, r.check, r.steps)
	if len(r.runs)+len(o.explored) == 0 {
		return e.refuse(s.stop, o, err)
	}
	e.complain(err)
	return r.answer(ctx, s, begun, seed, err)
}

func (r *rounds) answer(ctx context.Context, s signals, begun time.Time, seed uint64, err error) int {
	e, o, runs, stop := r.e, r.o, r.runs, s.stop
	if o.endless() {
		stop = context.WithoutCancel(stop)
	}
	var gone []results.Failover
	first := len(o.loads()) > 1
	if first && err == nil {
		gone = e.failOver(ctx, s, r.c, o)
	}
	gates := compare.CheckGates(o.gates, runs)
	o.plan.Workload.Seed = seed
	judged := append(o.explored, judgements(o.plan.Out, runs)...)
	f := results.Findings{Judged: judged, NotRun: r.not, Took: time.Since(begun),
		Whole:  o.weigh(judged, r.not, cmp.Or(err, context.Cause(stop))),
		Report: r.reports.last(o.plan.Out), Replay: o.replays(runs), Repeat: o.repeats(r.c, o.plan)}
	x := o.tapped(exit(stop, f.Whole, gates, err))
	document := Document{Schema: schema, Exit: x, Runs: runs, Explored: o.explored, NotRun: r.not, Gates: gates,
		Failovers: gone}
	if o.plan.Verify {
		document.Verdict, document.Repeat = &f.Whole, f.Repeat
	}
	text := func(w io.Writer) (err error) {
		switch {
		case o.plan.Verify:
			err = f.Write(w)
			err = errors.Join(err, results.WriteService(w, runs), results.WritePhases(w, runs))
		case o.count > 1:
			err = errors.Join(results.WriteText(w, runs), compare.WriteSpread(w, runs))
		case first:
			err = writeFirst(w, runs, gone, f.Report)
		default:
			err = results.WriteText(w, runs)
		}
		err = errors.Join(err, compare.WriteGates(w, gates))
		if !o.plan.Verify && !first && !o.quiet {
			err = errors.Join(err, writeReport(w, f.Report))
		}
		return err
	}
	return e.answer(o, result{x, document, text, o.plan.Out, "", append(judged, gateJudgements(gates)...), nil})
}

// check resolves --scenario. If the plan has scenarios, their runs share servers.
func (r *rounds) check(context.Context) error {
	if r.o.scenarios(); len(r.o.plan.Scenarios) > 0 {
		r.warm = new(harness.Warm)
	}
	return nil
}

// steps yields the runs of all rounds. A round runs each load in turn. If explore is one of the scenarios, the first
// step also explores the locks.
func (r *rounds) steps(yield func(*step) bool) {
	e, o, loads := r.e, r.o, r.o.loads()
	defer e.coordinate(o)()
	for i := range o.count * len(loads) {
		loads[i%len(loads)](&o.plan)
		st := &step{plan: o.plan, more: func(stop context.Context, job *harness.Job) bool {
			return r.more(stop, job, i, len(loads))
		}}
		goesOn := yield(st)
		o.plan = st.plan // the plan with all defaults resolved
		r.runs = append(r.runs, st.runs...)
		if st.job != nil {
			// leave out those that an earlier round already reported
			known := func(n results.NotRun) bool { return slices.Contains(r.not, n) }
			r.not = append(r.not, slices.DeleteFunc(st.job.NotRun, known)...)
		}
		if !goesOn || r.over {
			return
		}
		if (i+1)%len(loads) == 0 {
			o.plan.Workload.Seed++
		}
	}
}

// The method more prepares the job of a step, and returns whether to run it. The argument number counts all steps
// from 0. Each round has as many steps as there are loads.
func (r *rounds) more(stop context.Context, job *harness.Job, number, loads int) (begins bool) {
	e, o := r.e, r.o
	if o.count > 1 {
		e.say(o, "round %d of %d", number+1, o.count)
	}
	if number < loads {
		r.foretell(job, o.count)
	}
	if number == 0 && o.explores {
		if r.not, begins = r.exploreFirst(stop, job); !begins {
			r.over = true
			return false
		}
	}
	if number == 0 && !o.quiet && o.quick {
		e.lines("note:", errors.New(quickNote))
	}
	if !o.quiet && len(job.LeftOut) > 0 {
		e.lines("note:", lines(job.LeftOut))
	}
	job.Hopeless = o.hopeless()
	return true
}

// planCommand makes a command that runs a plan. It adds a subcommand "run", which does the same.
func (e Env) planCommand(c *cobra.Command, p harness.Plan) *cobra.Command {
	o := newOptions(c, p)
	o.allFlags()
	do := interruptible(func(ctx context.Context, s signals, _ []string) int { return e.run(ctx, s, c, o) })
	c.Args = e.takes(0, 0)
	run := &cobra.Command{Use: "run", Hidden: true, Short: c.Short, Long: c.Long, Example: c.Example, Args: c.Args}
	run.Flags().SortFlags = false
	run.Flags().SetNormalizeFunc(settings.Normal)
	run.Flags().AddFlagSet(c.Flags())
	c.AddCommand(e.command(run, o, do))
	return e.command(c, o, do)
}
