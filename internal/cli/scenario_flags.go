package cli

import (
	"slices"

	"github.com/spf13/pflag"

	"hammerlock/internal/settings"
	"hammerlock/scenarios"
)

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
