package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"hammerlock/internal/crew"
	"hammerlock/internal/harness"
	"hammerlock/results"
	"hammerlock/results/compare"
)

// Bench runs the command "bench" and returns its exit code.
func Bench(ctx context.Context, e Env) int {
	if len(e.Args) > 0 {
		switch e.Args[0] {
		case "replay", "report":
			code := Passed
			return e.saved(ctx, "bench", &code, e.replayCommand(), e.reportCommand())
		}
	}
	return e.dispatch(ctx, e.benchCommands())
}

// benchCommands are bench and what stands below it.
func (e Env) benchCommands() []*command {
	bench := e.planned(&cobra.Command{
		Use:   "bench",
		Short: "compare topologies and locks under load",
		Long: "bench starts Redis deployments, lets workers take a lock that guards a shared page-view counter on\n" +
			"each, and prints what it costs, who starves, and whether a page view was lost. Without flags: all\n" +
			"five topologies, each with the lock it is made for.\n\n" +
			"  bench report RUN...        print saved runs again; --html FILE writes them as one page\n" +
			"  bench replay RUN           show a saved run of verify in the dashboard",
		Example: "  bench\n  bench --topology single,redlock --workers 64 --duration 30s\n" +
			"  bench --topology single --lock none --workers 16 --duration 2s   # exits 1: page views are lost\n" +
			"  bench --topology single --gate 'response.p99<50ms' --count 6     # exits 5 if it is slower",
	}, false)
	bench.AddCommand(e.replayCommand(), e.reportCommand())
	return []*command{bench, e.compareCommand(), e.abCommand(), e.searchCommand()}
}

// planned is a command that carries out a plan.
func (e Env) planned(c *cobra.Command, verify bool) *command {
	return &command{Command: c, o: newOptions(c, verify), run: e.runPlan}
}

// work is a worker process. An interrupt at the terminal is the suite's business.
func (e Env) work(ctx context.Context) int {
	if err := crew.Child(ctx, e.Stdin, e.Stdout, workersKnow()); err != nil {
		_, _ = fmt.Fprintln(e.Stderr, "error:", err)
		return Broken
	}
	return Passed
}

func (e Env) runPlan(base context.Context, c *command, _ []string) int {
	ctx, s, done := onSignals(base)
	defer done()
	runs, err := e.carryOut(ctx, s, c)
	gates := compare.CheckGates(c.o.gates, runs)
	return e.report(c.o, exit(s.stop, runs, gates, err), runs, gates, err)
}

// carryOut runs the plan as often as was asked for, each time with the next seed.
func (e Env) carryOut(ctx context.Context, s signals, c *command) (runs []results.Run, err error) {
	o := c.o
	if o.count < 1 || o.count > maxCount {
		o.mistake("--count %d: from 1 to %d", o.count, maxCount)
	}
	metrics, err := o.openMetrics(e)
	if err != nil {
		o.mistake("%v", err)
	}
	defer metrics.close(ctx)
	var kept reports
	defer kept.close(e, o.plan.Out)
	seed := o.plan.Workload.Seed
	for i := range max(o.count, 1) { // without a round nothing would be checked
		o.plan.Workload.Seed = seed + uint64(i)
		job, err := o.plan.Check(s.stop, o.mistakes)
		if err != nil {
			return runs, err
		}
		if o.count > 1 && !o.quiet {
			_, _ = fmt.Fprintf(e.Stderr, "round %d of %d\n", i+1, o.count)
		}
		job.Command = func(x harness.Combination) string { return o.repeat(c, x.Topology.Name, x.Lock.Name) }
		job.Kept = kept.save
		more, err := e.watched(ctx, s, o, job, metrics)
		runs = append(runs, more...)
		if err != nil || s.stop.Err() != nil {
			return runs, err
		}
	}
	return runs, nil
}
