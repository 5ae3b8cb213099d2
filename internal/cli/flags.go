package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/settings"
	"hammerlock/results"
	"hammerlock/results/compare"
	"hammerlock/scenarios"
)

// options has the flags of a command, and the mistakes found in its command line so far.
type options struct {
	settings.Set
	plan   harness.Plan
	json   bool
	quiet  bool
	list   bool
	tui    string
	quick  bool
	strict bool // every scenario must have a verdict

	expect   bool
	markdown string

	count int
	gates []compare.Gate
	live  []func(context.Context, Env) shows // functions that open the outputs with an address
	files []func(*Document) error            // functions that write the output files

	places map[string]string // address that an output has opened -> its flag

	runFiles []output // outputs that are written beside each run

	explores bool                // explore is one of the scenarios
	explored []results.Judgement // judgements of explorations

	listing  bool       // the plan's file may list services
	services []*options // services in the order of the file

	fleet fleetFlags

	overheard bool          // the replication stream alone has proved a violation
	linger    time.Duration // longest time for which metrics are served at the end, until they are read
}

// newOptions returns the options of a command. The help shows flags in the order in which they are declared.
func newOptions(c *cobra.Command, p harness.Plan) *options {
	return &options{Set: settings.Of(c), plan: p}
}

// invalid returns an error that lists all mistakes; nil if there are none.
func (o *options) invalid() error {
	if len(o.Mistakes) == 0 {
		return nil
	}
	return &harness.UsageError{Mistakes: o.Mistakes}
}

func usage(format string, args ...any) error {
	return &harness.UsageError{Mistakes: human.Mistakes{human.Wrong("", format, args...)}}
}

// Parts of a command line: each flag belongs to one. Flags of the part session are left out of the command line that
// repeats a run.
const (
	session settings.Part = iota // about this command, or the output of its runs
	axis                         // about the plan: a list, of which each run has one element
	setting                      // about the plan, for all runs
	load                         // about the plan, for all runs, unless scenarios set it
	instead                      // like load; if scenarios are the default, the flag asks for a run without scenarios
)

func flag(p settings.Part, name, usage string) settings.Flag {
	return settings.Flag{Part: p, Name: name, Usage: usage}
}

// ofPlan tells whether a flag is about the plan.
func ofPlan(_ *pflag.Flag, v *settings.Value) bool { return v.Part != session }

// unknownFlags reports all unknown flags. The library was told to skip them, so this function parses the arguments
// again. This time the library stops at an unknown flag, and parsing continues with the argument after it. No value
// is set.
func (o *options) unknownFlags(c *cobra.Command, args []string) {
	f := c.Flags()
	var good []string
	f.VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			good = append(good, flag.Name)
		}
	})
	f.ParseErrorsAllowlist.UnknownFlags = false
	var unknown *pflag.NotExistError
	for errors.As(f.ParseAll(args, func(*pflag.Flag, string) error { return nil }), &unknown) {
		name, letters := "--"+unknown.GetSpecifiedName(), unknown.GetSpecifiedShortnames()
		if letters != "" {
			name = name[1:]
		}
		at := slices.IndexFunc(args, func(arg string) bool {
			flag, _, _ := strings.Cut(arg, "=")
			return flag == name || letters != "" && strings.HasPrefix(arg, "-") && strings.HasSuffix(arg, letters)
		})
		o.Mistake("", "%s: no such flag%s", name, unknownFlag(c, args[at], good))
		args = args[at+1:]
	}
}

const scenarioFlag = "scenario"

func (o *options) scenarioFlags() {
	preset := o.plan.Scenarios
	if len(preset) == len(allStrains) {
		o.plan.Scenarios = []scenarios.Scenario{{Name: everyScenario}}
	}
	settings.Some(&o.Set, flag(axis, scenarioFlag, "what to strain the lock with, a run each:\n"+allScenarios.String()+
		";\nall: those that apply. Without it, --fault or anything about the load makes one run of that"),
		&o.plan.Scenarios, allScenarios)
	o.plan.Scenarios = preset
}

// scenarios resolves --scenario. A scenario sets its own load and faults. So a flag for load or faults is a mistake
// if the user names scenarios. Otherwise such a flag replaces the default scenarios by one run without a scenario.
func (o *options) scenarios() {
	p := &o.plan
	if slices.ContainsFunc(p.Scenarios, func(s scenarios.Scenario) bool { return s.Name == everyScenario }) {
		p.Scenarios = allStrains
	}
	named := o.Flags.Changed(scenarioFlag)
	switch {
	case len(p.Phases) == 0 || len(p.Scenarios) == 0 || named && len(p.Services) > 0:
	case named:
		o.Wrong(o.Lists[phasesKey], "%s: scenarios say what the load is; leave it out, or --%s", phasesKey,
			scenarioFlag)
	default:
		p.Scenarios = nil
		o.Value(scenarioFlag).Text = ""
	}
	o.Flags.VisitAll(func(f *pflag.Flag) {
		v := settings.ValueOf(f)
		switch {
		case v == nil || !f.Changed || v.Part != load && v.Part != instead || len(p.Scenarios) == 0:
		case named && len(p.Services) > 0: // services do not run scenarios, so they use these flags
		case named:
			o.Mistake(f.Name, ": scenarios say what the load is and what breaks; leave it out, or --scenario")
		default:
			p.Scenarios = nil
			o.Value(scenarioFlag).Text = ""
		}
	})
	o.explores = slices.ContainsFunc(p.Scenarios, isExplore)
	p.Scenarios = slices.DeleteFunc(slices.Clone(p.Scenarios), isExplore)
}
