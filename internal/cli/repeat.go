package cli

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/settings"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/topologies"
)

// arguments returns the flags with which the root command repeats a plan. They include topology, lock, seed, and
// every setting that differs from its default. Phases stay in their file, which a flag names.
func arguments(root *cobra.Command, p harness.Plan) (args []string) {
	o := &options{Set: settings.New(), plan: p}
	o.planFlags()
	o.Flags.VisitAll(func(f *pflag.Flag) {
		v := settings.ValueOf(f)
		preset := v.Text == root.Flags().Lookup(f.Name).DefValue
		if f.Name == "duration" && !p.Verify && len(p.Scenarios) == 0 {
			preset = false // without a load, bench runs its default loads: see firstLoads
		}
		switch {
		case said(&p, f.Name):
		case v.Repeatable && v.Part != session:
			for _, text := range v.Given {
				args = append(args, "--"+f.Name, text)
			}
		case v.Part == session, v.Part == axis && v.Text == "", v.Part == setting && preset:
		case v.Part == load && (preset || len(p.Scenarios) > 0), v.Part == instead && len(p.Scenarios) > 0:
		case f.NoOptDefVal != "":
			args = append(args, "--"+f.Name+"="+v.Text)
		default:
			args = append(args, "--"+f.Name, v.Text)
		}
	})
	if len(p.Phases) > 0 {
		args = append([]string{"--" + settings.FileFlag, p.File}, args...)
	}
	return append(append(args, coordinator(&p)...), "--seed", strconv.FormatUint(p.Workload.Seed, 10))
}

// repeat returns the command line that runs a plan again.
func repeat(root *cobra.Command, p harness.Plan) string {
	if p.Program != nil {
		return repeatProgram(root, p.Program.Args)
	}
	parts := strings.Fields(root.CommandPath())
	parts[0] = typed(parts[0])
	for _, arg := range arguments(root, p) {
		parts = append(parts, quote(arg))
	}
	return strings.Join(parts, " ")
}

// repeatRun returns a function. For one run of the plan, this function returns the command line that repeats the run.
func repeatRun(root *cobra.Command, p harness.Plan) func(harness.Combination) string {
	return func(x harness.Combination) string {
		if x.Plan.Service != nil && p.Service == nil {
			return repeatService(root, p, x.Lock.Name)
		}
		p.Topologies, p.Locks = []topologies.Spec{x.Topology}, []locks.Spec{x.Lock}
		if x.Scenario.Name != "" {
			p.Scenarios = []scenarios.Scenario{x.Scenario}
		}
		return repeat(root, p)
	}
}

// repeatProgram returns the command line that repeats a watch. It contains no passwords.
func repeatProgram(c *cobra.Command, given []string) string {
	parts := []string{typed("verify"), "wire"}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		v := settings.ValueOf(f)
		if v == nil || v.Part == session {
			return
		}
		for _, text := range v.Given {
			if parts = append(parts, "--"+f.Name); f.NoOptDefVal == "" {
				parts = append(parts, quote(text))
			}
		}
	})
	if len(given) > 0 {
		parts = append(parts, "--")
	}
	return strings.Join(append(parts, human.Names(given, quote)...), " ")
}

// repeatService returns the command line that tests one service of a plan again; empty if there is no service of that
// name.
func repeatService(root *cobra.Command, p harness.Plan, name string) string {
	if len(p.Phases) > 0 {
		return repeat(root, p) // http does not accept a plan with several services
	}
	http, _, err := root.Root().Find([]string{"http"})
	i := slices.IndexFunc(p.Services, func(s harness.Plan) bool { return s.Service.Name() == name })
	if err != nil || i < 0 {
		return ""
	}
	return repeat(http, p.Services[i])
}

// repeats returns the command line that repeats the whole plan, not only one of its runs.
func (o *options) repeats(c *cobra.Command, p harness.Plan) string {
	if o.explores {
		p.Scenarios = append([]scenarios.Scenario{exploreScenario}, p.Scenarios...)
	}
	return repeat(c, p)
}

// replays returns the command line that replays the first failed run or, if none failed, the first run. It is empty
// if there are no runs.
func (o *options) replays(runs []results.Run) string {
	if len(runs) == 0 {
		return ""
	}
	shown := max(slices.IndexFunc(runs, func(r results.Run) bool { return r.Failed() }), 0)
	return typed("bench") + " replay " + quote(filepath.Join(o.plan.Out, runs[shown].Name))
}

// The function said tells whether phases, a burst or agents replace the flag.
func said(p *harness.Plan, flag string) bool {
	return len(p.Phases) > 0 && slices.Contains(phasesSay, flag) || slices.Contains(burstSaid(p), flag) ||
		slices.Contains(agentsSaid(p), flag)
}
