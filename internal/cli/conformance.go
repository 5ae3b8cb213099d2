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
		Args: e.takes(1, 1),
		Long: "conformance strains a lock with the scenarios that ask for its claims, and tells of each claim\n" +
			"whether it holds, with the shortest story of what broke it. A lock that is in no catalogue is a\n" +
			"program: docs/DRIVERS.md.",
		Example: "  verify conformance 'exec:python3 drivers/python/template.py'\n" +
			"  verify conformance plain-del",
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
	o.has(webOutput, metricsOutput, jsonOutput, quietOutput)
	o.tui = tuiOff
	return e.command(c, o, interruptible(func(ctx context.Context, s signals, args []string) int {
		x := &series{e: e, o: o, root: c.Root(), warm: new(harness.Warm)}
		st := &step{more: func(_ context.Context, job *harness.Job) bool { x.foretell(job, 1); return true }}
		err := x.carryOut(ctx, s, func(context.Context) error { return o.oneLock(args, st) },
			func(yield func(*step) bool) { yield(st) })
		return e.conformance(s.stop, o, st, err)
	}))
}

// oneLock sets the lock of a step's plan to the lock that the argument names.
func (o *options) oneLock(args []string, st *step) error {
	for _, name := range args[:min(len(args), 1)] {
		lock, err := locksOf(o.plan.Known).Find(name)
		if err != nil {
			o.Mistake("", "%q: %v; or one argument for a program, as 'exec:python3 driver.py'", name, err)
		}
		o.plan.Locks = []locks.Spec{lock}
	}
	o.plan.Preset = !o.Flags.Changed("topology")
	st.plan = o.plan
	return nil
}

// undecided returns a sentence with the claims that no run could judge. It is empty if every claim was judged.
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

func (e Env) conformance(stop context.Context, o *options, st *step, err error) int {
	if len(st.runs) == 0 {
		return e.refuse(stop, o, err)
	}
	e.complain(err)
	lock, runs := st.job.Combinations[0].Lock, st.runs
	all := results.Conformance(lock.Claims, runs)
	judged := judgements(o.plan.Out, runs)
	whole := results.Weigh(judged, nil, "", nil)
	x := exit(stop, whole, nil, err)
	if x.Code == Inconclusive {
		x = Exit{} // the exit code depends on undecided claims, not on undecided runs
	}
	x = x.undecided(undecided(all))
	document := struct {
		Schema int             `json:"schema"`
		Exit   Exit            `json:"exit"`
		Lock   string          `json:"lock"`
		Made   history.Claims  `json:"made"`
		Claims []results.Claim `json:"claims"`
		Tried  *results.Extent `json:"tried,omitempty"`
	}{schema, x, lock.Name, lock.Claims, all, whole.Extent}
	text := func(w io.Writer) error { return results.WriteConformance(w, lock.Name, all, whole.Extent) }
	return e.answer(o, result{x, document, text, o.plan.Out, "", judged, nil})
}
