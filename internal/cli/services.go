package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"hammerlock/internal/attach"
	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/settings"
)

// servicesKey is the key of the list of services in a plan's file. It has no flag: on a command line, the command
// "http" takes one service.
const servicesKey = "services"

// serviceSettings lists the flags of "http" that a service in a plan's file may set. The load is not among them,
// because the plan sets one load for all services.
func serviceSettings(flags *pflag.FlagSet) []string {
	return settings.Having(flags, func(f *pflag.Flag, v *settings.Value) bool {
		return v.Part == setting || f.Name == "fault" || f.Name == "burst"
	})
}

// settleServices reads the services in a plan's file. If the user sets no topology, lock or address, only services
// are tested, and no locks.
func (o *options) settleServices() {
	if o.Lists[servicesKey] == nil {
		return
	}
	if o.Lists[servicesKey].Kind != yaml.SequenceNode || len(o.Lists[servicesKey].Content) == 0 {
		o.Wrong(o.Lists[servicesKey], "%s: a list, as in - {visit: POST http://..., count: GET http://...}",
			servicesKey)
		return
	}
	for _, n := range o.Lists[servicesKey].Content {
		s := o.readService(n)
		if s == nil {
			continue
		}
		o.services, o.plan.Services = append(o.services, s), append(o.plan.Services, s.plan)
		o.Places[human.Mistake{Setting: servicesKey, Item: fmt.Sprint(len(o.services))}] = o.Place(n)
	}
	locking := []string{"topology", "lock", "addr"}
	if slices.ContainsFunc(locking, o.Flags.Changed) {
		return
	}
	o.plan.Topologies, o.plan.Locks, o.plan.Scenarios = nil, nil, nil
	for _, name := range append(locking, scenarioFlag) {
		if v := o.Value(name); v != nil {
			v.Text = "" // the plan that is printed omits them, too
		}
	}
}

// readService reads one service in a plan's file, and reports mistakes with their lines. It returns nil if the entry
// is not a YAML mapping.
func (o *options) readService(n *yaml.Node) *options {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		o.Wrong(n, "a service is a list of NAME: VALUE, as in {visit: POST http://..., count: GET http://...}")
		return nil
	}
	s := &options{Set: settings.New()}
	s.File, s.Hide = o.File, o.Hide
	s.plan = visiting(o.plan)
	s.plan.Services, s.plan.Attach = nil, attach.Flags{Secrets: o.plan.Attach.Secrets}
	s.planFlags()
	for name, node := range o.KeysOf(n, " of a service", serviceSettings(s.Flags)) {
		items, err := o.ItemsOf(node, s.Value(name))
		if err != nil {
			o.Wrong(node, "%s: %v", name, err)
		}
		s.Give(name, o.Place(node), items...)
	}
	if usage, ok := s.placed(s.invalid()).(*harness.UsageError); ok {
		o.Mistakes.Add(usage.Mistakes...)
	}
	return s
}

// writeServices writes the services as in a plan's file. Each line has the origin of its setting as a comment.
func (o *options) writeServices(p *human.Printer) {
	if len(o.services) > 0 {
		p.Line("%-40s # %s", servicesKey+":", o.Place(o.Lists[servicesKey]))
	}
	for _, s := range o.services {
		first := "    - "
		for _, name := range serviceSettings(s.Flags) {
			if origin := s.Origins[name]; origin != "" {
				settings.Write(p, first, "      ", name, s.Value(name), origin)
				first = "      "
			}
		}
	}
}

func serviceSchema() map[string]any {
	s := &options{Set: settings.New(), plan: visiting(harness.Plan{})}
	s.planFlags()
	properties := map[string]any{}
	for _, name := range serviceSettings(s.Flags) {
		properties[name] = settings.FlagSchema(s.Flags.Lookup(name))
	}
	return map[string]any{
		"description": "services that lock by themselves, each visited under the load of the plan",
		"type":        "array", "items": settings.ObjectSchema(properties, "visit", "count"),
	}
}
