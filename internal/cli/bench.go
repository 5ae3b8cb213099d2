package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"hammerlock/internal/harness"
	"hammerlock/results"
	"hammerlock/results/compare"
)

// benchCommand is bench with the commands below it.
func (e Env) benchCommand() *cobra.Command {
	bench := e.planCommand(&cobra.Command{
		Use:   "bench",
		Short: "compare topologies and locks under load",
		Long: "bench starts Redis deployments, lets workers take a lock that guards a shared page-view counter on\n" +
			"each, and prints what it costs, who starves, and whether a page view was lost. Without flags: all\n" +
			"topologies, each with the lock it is made for.\n\n" +
			"  bench report RUN...        print saved runs again; --html FILE writes them as one page\n" +
			"  bench replay RUN           show a saved run of verify in the dashboard",
		Example: "  bench\n  bench --topology single,redlock --workers 64 --duration 30s\n" +
			"  bench --topology single --lock none --workers 16 --duration 2s   # exits 1: page views are lost\n" +
			"  bench --topology single --gate 'response.p99<50ms' --count 6     # exits 5 if it is slower",
	}, benchPlan())
	bench.AddCommand(e.abCommand(), e.compareCommand(), e.replayCommand(), e.reportCommand(), e.searchCommand())
	return bench
}

// planCommand is a command that carries out a plan; it can be called run below its own name.
func (e Env) planCommand(c *cobra.Command, p harness.Plan) *cobra.Command {
	o := newOptions(c, p)
	o.count = 1
	o.planFlags()
	o.integer(flag{session, "count", "how often to run everything, each time with the next seed"}, &o.count, maxCount)
	o.gateFlag("what must hold at the end, or the exit code is 5; may be given several times,\nas in response.p99<50ms, "+
		"throughput>1000/s, fairness.jain>0.8, cost.round_trips<=2.1", o.gate)
	o.text(flag{session, "benchfmt", "write the runs in the format of Go benchmarks, for benchstat"}, "file", &o.benchfmt)
	o.runFlags()
	do := interruptible(func(ctx context.Context, s signals, _ []string) int { return e.run(ctx, s, c, o) })
	c.Args = takes(0, 0)
	run := &cobra.Command{Use: "run", Hidden: true, Short: c.Short, Long: c.Long, Example: c.Example, Args: c.Args}
	run.Flags().SortFlags = false
	run.Flags().AddFlagSet(c.Flags())
	c.AddCommand(e.command(run, o, do))
	return e.command(c, o, do)
}

func (e Env) run(ctx context.Context, s signals, c *cobra.Command, o *options) int {
	runs, err := e.rounds(ctx, s, c, o)
	if len(runs) == 0 {
		return e.refuse(s.stop, o, err)
	}
	e.complain(err)
	gates := compare.CheckGates(o.gates, runs)
	judged := judgements(o.plan.Out, runs)
	x := exit(s.stop, judged, gates, err)
	return e.answer(o, result{x, Document{Schema: schema, Exit: x, Runs: runs, Gates: gates}, func(w io.Writer) (err error) {
		switch {
		case o.plan.Verify:
			err = results.WriteVerdicts(w, judged)
		case o.count > 1:
			err = errors.Join(results.WriteText(w, runs), compare.WriteSpread(w, runs))
		default:
			err = results.WriteText(w, runs)
		}
		return errors.Join(err, compare.WriteGates(w, gates))
	}, errors.Join(o.writeBenchmarks(runs), e.notify(o.plan.Out, append(judged, gateJudgements(gates)...)))})
}

// rounds runs the plan --count times, each time with the next seed.
func (e Env) rounds(ctx context.Context, s signals, c *cobra.Command, o *options) (runs []results.Run, err error) {
	metrics := e.openMetrics(o)
	defer metrics.close(ctx)
	var kept reports
	defer kept.close(e, o.plan.Out)
	var warm *harness.Warm
	if o.scenarios(c); len(o.plan.Scenarios) > 0 {
		warm = new(harness.Warm)
		defer func() { err = errors.Join(err, warm.Close()) }()
	}
	for i := range o.count {
		job, err := o.plan.Check(s.stop, o.mistakes)
		if err != nil {
			return runs, err
		}
		if o.count > 1 && !o.quiet {
			_, _ = fmt.Fprintf(e.Stderr, "round %d of %d\n", i+1, o.count)
		}
		if !o.quiet && len(job.LeftOut) > 0 {
			e.lines("note:", errors.New(strings.Join(job.LeftOut, "\n")))
		}
		job.Command = repeatRun(c, job.Plan)
		job.Kept, job.Warm = kept.save, warm
		more, err := e.show(ctx, s, o, job, metrics)
		runs = append(runs, more...)
		if err != nil || s.stop.Err() != nil {
			return runs, err
		}
		o.plan.Workload.Seed++
	}
	return runs, nil
}
