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
)

// maxCount keeps a typing error from running for days.
const maxCount = 1000

func (e Env) benchCommand() *cobra.Command {
	bench := e.planCommand(&cobra.Command{
		Use:   "bench",
		Short: "compare topologies and locks under load",
		Long: "bench starts Redis deployments, loads a distributed lock on each, and prints what the lock costs, who starves, and\n" +
			"whether it let two workers in at once. Without a flag for the load there are two loads: 100 visits a second, then a crowd.\n" +
			"verify is the other command: it breaks things meanwhile, and judges.",
		Example: "  bench                                                            # all topologies, each with its lock\n" +
			"  bench --quick                                                    # a first look, in half a minute\n" +
			"  bench --topology single,redlock --workers 64 --duration 30s\n" +
			"  bench --addr redis://127.0.0.1:6379 --lock redsync               # your own server\n" +
			"  bench --topology single --lock none --workers 16 --duration 2s   # exits 1: page views are lost\n" +
			"  bench --topology single --gate 'response.p99<50ms' --count 6     # exits 5 if it is slower",
	}, e.benchPlan())
	bench.AddCommand(e.agentCommand(), e.abCommand(e.shortPlan(), abExample), e.compareCommand(),
		e.httpCommand(e.benchPlan()), e.planFileCommand(e.benchPlan()), e.replayCommand(), e.reportCommand(),
		e.schemaCommand(e.benchPlan()),
		e.searchCommand(e.shortPlan(), searchExample), e.failoverCommand(e.benchPlan()))
	return bench
}

// planCommand is a command that carries out a plan; it can be called run below its own name.
func (e Env) planCommand(c *cobra.Command, p harness.Plan) *cobra.Command {
	o := newOptions(c, p)
	o.allFlags()
	do := interruptible(func(ctx context.Context, s signals, _ []string) int { return e.run(ctx, s, c, o) })
	c.Args = takes(0, 0)
	run := &cobra.Command{Use: "run", Hidden: true, Short: c.Short, Long: c.Long, Example: c.Example, Args: c.Args}
	run.Flags().SortFlags = false
	run.Flags().SetNormalizeFunc(settings.Normal)
	run.Flags().AddFlagSet(c.Flags())
	c.AddCommand(e.command(run, o, do))
	return e.command(c, o, do)
}

// allFlags declares the flags of a command that carries out plans.
func (o *options) allFlags() {
	o.count = 1
	o.planFlags()
	if o.listing = o.plan.Service == nil; o.listing { // with a service, --count is the request for the count
		o.Begin(agentsSection)
		o.fleetFlags()
		o.Begin(runSection)
		o.Integer(flag(session, "count", "how often to run everything, each time with the next seed"), &o.count,
			maxCount)
	}
	if o.listing && !o.plan.Verify {
		o.Toggle(flag(session, "quick",
			"a first look: 2 s each, 4 workers and a short warm-up, where nothing else is said of them"), "", &o.quick)
	}
	o.Begin(gatesSection)
	if o.plan.Verify {
		o.strictFlag()
	}
	if o.plan.Verify && o.listing {
		o.expectFlags()
	}
	o.gateFlag("what must hold at the end, or the exit code is 5; may be given several times,\nas in response.p99<50ms, "+
		"throughput>1000/s, fairness.jain>0.8, cost.round_trips<=2.1", o.gate)
	o.planned(planOutputs...)
}

// rounds carries out a plan --count times, each time with the next seed.
type rounds struct {
	*series
	c    *cobra.Command
	kept reports
	runs []results.Run
	not  []results.NotRun // scenarios that were not run
	over bool             // no round follows
}

func (e Env) run(ctx context.Context, s signals, c *cobra.Command, o *options) int {
	if o.expect {
		return e.expectations(ctx, s, c, o)
	}
	o.unexpected()
	r := &rounds{series: &series{e: e, o: o, root: c}, c: c}
	r.series.kept = func(dir string) {
		e.complain(o.keepPlan(dir))
		r.kept.save(dir)
	}
	r.page = func() string {
		r.kept.close(e, o, r.not)
		return r.kept.last(o.plan.Out)
	}
	begun, seed := time.Now(), o.plan.Workload.Seed
	err := r.carryOut(ctx, s, r.check, r.steps)
	if len(r.runs)+len(o.explored) == 0 {
		return e.refuse(s.stop, o, err)
	}
	e.complain(err)
	return r.answer(ctx, s, begun, seed, err)
}

// answer judges all runs, and writes what came of them.
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
		Report: r.kept.last(o.plan.Out), Replay: o.replays(runs), Repeat: o.repeats(r.c, o.plan)}
	x := o.tapped(exit(stop, f.Whole, gates, err))
	document := Document{Schema: schema, Exit: x, Runs: runs, Explored: o.explored, NotRun: r.not, Gates: gates,
		Failovers: gone}
	if o.plan.Verify {
		document.Verdict, document.Repeat = &f.Whole, f.Repeat
	}
	return e.answer(o, result{x, document, func(w io.Writer) (err error) {
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
	}, e.notify(o.plan.Out, append(judged, gateJudgements(gates)...))})
}

// check keeps servers for scenarios.
func (r *rounds) check(context.Context) error {
	if r.o.scenarios(); len(r.o.plan.Scenarios) > 0 {
		r.warm = new(harness.Warm)
	}
	return nil
}

// steps are the rounds, of each load one after the other. The first explores the locks, if that is a scenario.
func (r *rounds) steps(yield func(*step) bool) {
	e, o, loads := r.e, r.o, r.o.loads()
	defer e.coordinate(o)()
	for i := range o.count * len(loads) {
		loads[i%len(loads)](&o.plan)
		st := &step{plan: o.plan, more: func(stop context.Context, job *harness.Job) bool {
			return r.more(stop, job, i, len(loads))
		}}
		goesOn := yield(st)
		o.plan = st.plan // what it has resolved
		r.runs = append(r.runs, st.runs...)
		if st.job != nil {
			known := func(n results.NotRun) bool { return slices.Contains(r.not, n) } // it does not apply in any round
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

// more tells what a round is, and sets what its job needs besides.
func (r *rounds) more(stop context.Context, job *harness.Job, number, loads int) (begins bool) {
	e, o := r.e, r.o
	if o.count > 1 {
		e.say(o, "round %d of %d", number+1, o.count)
	}
	if number < loads {
		r.foretell(job, o.count)
	}
	if number == 0 && o.explores {
		if r.not, begins = e.exploreFirst(stop, o, job); !begins {
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
