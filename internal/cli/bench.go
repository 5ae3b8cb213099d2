package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/settings"
	"hammerlock/results"
	"hammerlock/results/compare"
)

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
	o.Begin(outputSection)
	o.webFlag()
	o.Begin(gatesSection)
	if o.plan.Verify {
		o.strictFlag()
	}
	if o.plan.Verify && o.listing {
		o.expectFlags()
	}
	o.gateFlag("what must hold at the end, or the exit code is 5; may be given several times,\nas in response.p99<50ms, "+
		"throughput>1000/s, fairness.jain>0.8, cost.round_trips<=2.1", o.gate)
	o.fileFlags(runFiles...)
	o.runFlags()
}

func (e Env) run(ctx context.Context, s signals, c *cobra.Command, o *options) int {
	if o.expect {
		return e.expectations(ctx, s, c, o)
	}
	o.unexpected()
	begun, seed, kept := time.Now(), o.plan.Workload.Seed, reports{}
	runs, not, err := e.rounds(ctx, s, c, o, &kept)
	if len(runs)+len(o.explored) == 0 {
		return e.refuse(s.stop, o, err)
	}
	if o.beside != nil {
		run, failed := o.beside()
		if err = errors.Join(err, failed); run != nil {
			runs = append(runs, *run)
		}
	}
	e.complain(err)
	var gone []results.Failover
	first := len(o.loads()) > 1
	if first && err == nil {
		gone = e.failOver(ctx, s.stop, c, o)
	}
	gates := compare.CheckGates(o.gates, runs)
	o.plan.Workload.Seed = seed
	judged := append(o.explored, judgements(o.plan.Out, runs)...)
	f := results.Findings{Judged: judged, NotRun: not, Whole: o.weigh(judged, not, cmp.Or(err, context.Cause(s.stop))),
		Took:   time.Since(begun),
		Report: kept.last(o.plan.Out), Replay: o.replays(runs), Repeat: o.repeats(c, o.plan)}
	x := exit(s.stop, f.Whole, gates, err)
	document := Document{Schema: schema, Exit: x, Runs: runs, Explored: o.explored, NotRun: not, Gates: gates,
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
		return errors.Join(err, compare.WriteGates(w, gates))
	}, e.notify(o.plan.Out, append(judged, gateJudgements(gates)...))})
}

// rounds runs the plan --count times, each time with the next seed.
// It returns the runs, and the scenarios that were not run.
func (e Env) rounds(ctx context.Context, s signals, c *cobra.Command, o *options, kept *reports) (runs []results.Run,
	not []results.NotRun, err error) {
	shown := e.openOutputs(o)
	defer func() { err = errors.Join(err, shown.close(ctx, kept.last(o.plan.Out))) }()
	if len(shown) > 0 {
		o.inTurn()
	}
	defer func() { kept.close(e, o, not) }()
	defer e.coordinate(o)()
	var warm *harness.Warm
	if o.scenarios(); len(o.plan.Scenarios) > 0 {
		warm = new(harness.Warm)
		defer func() { err = errors.Join(err, warm.Close()) }()
	}
	loads := o.loads()
	for i := range o.count * len(loads) {
		loads[i%len(loads)](&o.plan)
		job, err := o.plan.Check(s.stop, o.Mistakes)
		if err != nil {
			return runs, not, err
		}
		if o.count > 1 {
			e.say(o, "round %d of %d", i+1, o.count)
		}
		if i < len(loads) {
			e.foretell(o, job, o.count)
		}
		if i == 0 && o.explores {
			further := false
			if not, further = e.exploreFirst(s.stop, o, job); !further {
				return runs, not, nil
			}
		}
		if i == 0 && !o.quiet && o.quick {
			e.lines("note:", errors.New(quickNote))
		}
		if !o.quiet && len(job.LeftOut) > 0 {
			e.lines("note:", errors.New(strings.Join(job.LeftOut, "\n")))
		}
		job.Hopeless = o.hopeless()
		job.Command = repeatRun(c, job.Plan)
		job.Kept, job.Warm = func(dir string) {
			e.complain(o.keepPlan(dir))
			kept.save(dir)
		}, warm
		job.Killed = e.foundKilled
		more, err := e.show(ctx, s, o, job, shown)
		runs = append(runs, more...)
		not = append(not, slices.DeleteFunc(job.NotRun, func(n results.NotRun) bool { // what does not apply does not apply in any round
			return slices.Contains(not, n)
		})...)
		if err != nil || s.stop.Err() != nil || o.plan.FailFast && slices.ContainsFunc(runs, func(r results.Run) bool { return r.Failed() }) {
			return runs, not, err
		}
		if (i+1)%len(loads) == 0 {
			o.plan.Workload.Seed++
		}
	}
	return runs, not, nil
}

// inTurn makes runs one after the other, for a page or a server of metrics that shows one only.
func (o *options) inTurn() {
	if o.plan.Jobs > 1 {
		o.Mistake("jobs", "%d: --web and --metrics show one run at a time", o.plan.Jobs)
	}
	o.plan.Jobs = 1
}

// foretell says how long a job takes that is carried out so often.
func (e Env) foretell(o *options, job *harness.Job, times int) {
	if n := len(job.Combinations) * times; n > 1 {
		e.say(o, "%s on %s, about %v", human.Quantity(n, "run"), human.List(on(job)),
			(job.Expected() * time.Duration(times)).Round(time.Second))
	}
}

// on names the topologies of a job.
func on(job *harness.Job) (names []string) {
	for i := range job.Combinations {
		if name := job.Combinations[i].Topology.Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
