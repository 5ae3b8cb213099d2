package cli

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/settings"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/topologies"
)

func (e Env) conformanceCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "conformance LOCK", Short: "which claims of a lock hold, claim by claim, in half a minute",
		Args: takes(1, 1),
		Long: "conformance strains a lock with the scenarios that ask for its claims, and tells of each claim whether it holds,\n" +
			"with the shortest story of what broke it. A lock that is in no catalogue is a program: docs/DRIVERS.md.",
		Example:           "  verify conformance 'exec:python3 drivers/python/template.py'\n  verify conformance plain-del",
		ValidArgsFunction: settings.CompleteList(locksOf(e.knows()).Names(), false),
	}
	p := e.verifyPlan()
	p.Topologies, p.Scenarios = slices.Clone(topologies.All[:1]), scenarios.Brief
	o := newOptions(c, p)
	settings.One(&o.Set, flag(axis, "topology", "where: "+topologiesOf(p.Known).String()), &o.plan.Topologies[0],
		topologiesOf(p.Known))
	o.Names(flag(setting, "driver-env", "variables that the program of exec: gets besides"), &o.plan.DriverEnv, nil)
	o.seed("repeats the schedules of another time (default: drawn)")
	o.Text(flag(setting, "redis-server", "the server to start (default: looked for)"), "path", &o.plan.RedisServer)
	o.out("where runs are saved")
	o.outputFlags()
	o.tui = tuiOff
	return e.command(c, o, interruptible(func(ctx context.Context, s signals, args []string) int {
		return e.conformance(ctx, s, c, o, args)
	}))
}

// undecided names the claims that no run has judged.
func undecided(all []results.Claim) string {
	var names []string
	for _, c := range all {
		if c.Status == checker.Inconclusive {
			names = append(names, c.Claim)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "no run could judge the claims " + human.List(names)
}

func (e Env) conformance(ctx context.Context, s signals, c *cobra.Command, o *options, args []string) int {
	for _, name := range args[:min(len(args), 1)] {
		lock, err := locksOf(o.plan.Known).Find(name)
		if err != nil {
			o.Mistake("", "%q: %v", name, err)
		}
		o.plan.Locks = []locks.Spec{lock}
	}
	o.plan.Preset = !o.Flags.Changed("topology")
	job, err := o.plan.Check(s.stop, o.Mistakes)
	if err != nil {
		return e.refuse(s.stop, o, err)
	}
	job.Command, job.Warm = repeatRun(c.Root(), job.Plan), new(harness.Warm)
	defer func() { e.complain(job.Warm.Close()) }()
	e.foretell(o, job, 1)
	runs, err := e.show(ctx, s, o, job, nil)
	if err != nil {
		return e.refuse(s.stop, o, err)
	}
	lock := job.Combinations[0].Lock
	all := results.Conformance(lock.Claims, runs)
	x := exit(s.stop, results.Weigh(judgements(o.plan.Out, runs), nil, "", nil), nil, nil)
	if x.Code == Inconclusive {
		x = Exit{} // what counts is whether every claim was decided by some run
	}
	x = x.undecided(undecided(all))
	return e.answer(o, result{x, struct {
		Schema int             `json:"schema"`
		Exit   Exit            `json:"exit"`
		Lock   string          `json:"lock"`
		Made   history.Claims  `json:"made"`
		Claims []results.Claim `json:"claims"`
	}{schema, x, lock.Name, lock.Claims, all},
		func(w io.Writer) error { return results.WriteConformance(w, lock.Name, all) }, nil})
}
