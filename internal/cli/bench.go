package cli

import (
	"github.com/spf13/cobra"
)

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
