package cli

import (
	"github.com/spf13/cobra"
)

func (e Env) verifyCommand() *cobra.Command {
	verify := e.planCommand(&cobra.Command{
		Use:   "verify",
		Short: "load plus faults, then judge",
		Long: "verify loads a distributed lock on real Redis deployments, breaks things meanwhile, and checks\n" +
			"afterwards whether two workers were ever inside at once. It runs all scenarios that apply to the\n" +
			"lock, after it has explored the lock in virtual time; with --fault or flags for the load it makes one\n" +
			"run of that. Its exit code is the verdict.",
		Example: "  verify --topology single --lock lease                            # passes, in a few minutes\n" +
			"  verify --topology single --lock lease --scenario crash,late-holder\n" +
			"  verify --topology sentinel --fault lost-grant                    # exits 1: the classic lost lock\n" +
			"  verify --topology redlock --fault kill-node@2s,heal@5s --seed 7\n" +
			"  verify --lock all --expect --topology single                     # every lock, as its entry says\n" +
			"  verify conformance 'exec:python3 drivers/python/template.py'     # in any language, by claim\n" +
			"  verify tour                                                      # how locks fail, and why",
	}, e.verifyPlan())
	verify.AddCommand(e.checkCommand(), e.certifyCommand(), e.exportCommand(), e.httpCommand(e.verifyPlan()),
		e.conformanceCommand(),
		e.exploreCommand(), e.wireCommand(), e.planFileCommand(e.verifyPlan()), e.tourCommand(), e.agentCommand(),
		e.failoverCommand(e.benchPlan()), e.soakCommand(e.verifyPlan()))
	return verify
}
