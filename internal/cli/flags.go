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

// options are the flags of a command, and what is wrong with its command line.
type options struct {
	settings.Set
	plan   harness.Plan
	json   bool
	quiet  bool
	list   bool
	tui    string
	quick  bool
	strict bool // no scenario may be undecided

	expect   bool
	markdown string

	count int
	gates []compare.Gate
	live  []func(context.Context, Env) shows // each opens an output that has an address
	files []func(*Document) error            // each writes a file that was asked for

	runFiles []output // written beside each run

	explores bool                // explore is one of the scenarios
	explored []results.Judgement // ... and this came of it

	listing  bool       // a plan's file may list services
	services []*options // as they were read

	fleet fleetFlags

	overheard bool          // a stream alone has shown a violation
	linger    time.Duration // how long metrics stay up at the end until they were read
}

// newOptions are the options of a command, which shows its flags in the order of their declaration.
func newOptions(c *cobra.Command, p harness.Plan) *options {
	return &options{Set: settings.Of(c), plan: p}
}

// invalid is the error of all mistakes; nil if there are none.
func (o *options) invalid() error {
	if len(o.Mistakes) == 0 {
		return nil
	}
	return &harness.UsageError{Mistakes: o.Mistakes}
}

func usage(format string, args ...any) error {
	return &harness.UsageError{Mistakes: human.Mistakes{human.Wrong("", format, args...)}}
}

// The groups of flags: the first keeps them out of the command that repeats a run.
const (
	session settings.Part = iota // this command, or the output of its runs
	axis                         // the plan, which runs all that is named: of each run it is one
	setting                      // the plan, for all of its runs
	load                         // the plan, for all of its runs, unless scenarios say that instead
	instead                      // as load; where scenarios are the default, it asks for one run instead
)

// flag is common to all declarations of flags.
func flag(p settings.Part, name, usage string) settings.Flag {
	return settings.Flag{Part: p, Name: name, Usage: usage}
}

// ofPlan tells whether a flag says something about the plan.
func ofPlan(_ *pflag.Flag, v *settings.Value) bool { return v.Part != session }

// unknownFlags names the flags that a command does not have. The library has ignored them to read all others. Now it
// reads the arguments again, without effect, and must stop at each of them; the next turn begins with the argument
// after it.
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

// scenarioFlags declares what picks scenarios.
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

// scenarios reads --scenario: all of them, if that was asked for. They say what the load is and what breaks: a flag for
// that is a mistake beside them, or asks for a run without them.
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
		case named && len(p.Services) > 0: // services have a load
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
