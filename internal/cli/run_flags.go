package cli

import "github.com/spf13/cobra"

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

// maxCount is the limit of --count. A typing error could otherwise start days of runs.
const maxCount = 1000

func (o *options) expectFlags() {
	o.Toggle(flag(session, "expect",
		"compare what is found with what the entries of the locks expect, a row for each:\n"+
			"right ones must pass, broken ones must show one of their causes; with --lock all, right or broken"), "",
		&o.expect)
	o.Written(flag(session, "markdown", "with --expect: put the rows into this document; rows of other locks stay"),
		&o.markdown)
}

// verifyFlags returns a command with the name and the flags of verify, for the command line that repeats a run. It
// cannot be executed.
func (e Env) verifyFlags() *cobra.Command {
	c := &cobra.Command{Use: "verify"}
	newOptions(c, e.verifyPlan()).allFlags()
	return c
}
