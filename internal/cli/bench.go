package cli

import (
	"context"

	"github.com/spf13/cobra"

	"hammerlock/internal/harness"
	"hammerlock/internal/settings"
)

// maxCount is the limit of --count. A typing error could otherwise start days of runs.
const maxCount = 1000

func (e Env) benchCommand() *cobra.Command {
	bench := e.planCommand(&cobra.Command{
		Use:   "bench",
		Short: "compare topologies and locks under load",
		Long: "bench starts Redis deployments, loads a distributed lock on each, and prints what the lock costs,\n" +
			"who starves, and whether it let two workers in at once. Without a flag for the load there are two\n" +
			"loads: 100 visits a second, then a crowd. verify is the other command: it breaks things meanwhile,\n" +
			"and judges.",
		Example: "  bench                                                            # all topologies\n" +
			"  bench --quick                                                    # a first look, in half a minute\n" +
			"  bench --topology single,redlock --workers 64 --duration 30s\n" +
			"  bench --addr redis://127.0.0.1:6379 --lock redsync               # your own server\n" +
			"  bench --topology single --lock none --workers 16 --duration 2s   # exits 1: page views are lost\n" +
			"  bench --topology single --gate 'response.p99<50ms' --count 6     # exits 5 if it is slower",
	}, e.benchPlan())
	bench.AddCommand(e.agentCommand(), e.abCommand(e.shortPlan(), abExample), e.compareCommand(),
		e.httpCommand(e.benchPlan()), e.planFileCommand(e.benchPlan()), e.replayCommand(), e.reportCommand(),
		e.schemaCommand(),
		e.searchCommand(e.shortPlan(), searchExample), e.failoverCommand(e.benchPlan()))
	return bench
}

// planCommand makes a command that runs a plan. It adds a subcommand "run", which does the same.
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

func (o *options) allFlags() {
	o.count = 1
	o.planFlags()
	// with a service, --count is not a number of runs, but the request that reads the service's count
	if o.listing = o.plan.Service == nil; o.listing {
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
	o.gateFlag("what must hold at the end, or the exit code is 5; may be given several times,\n"+
		"as in response.p99<50ms, throughput>1000/s, fairness.jain>0.8, cost.round_trips<=2.1", o.gate)
	o.planned(planOutputs...)
}
