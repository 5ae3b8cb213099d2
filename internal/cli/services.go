package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"hammerlock/internal/attach"
	"hammerlock/internal/harness"
	"hammerlock/internal/human"
)

// servicesKey lists services in a plan's file. It is no flag: a command line has one service, that of http.
const servicesKey = "services"

// serviceSettings are the settings of a service in a plan's file: flags of http. Its load is the load of the plan.
func serviceSettings(flags *pflag.FlagSet) []string {
	return flagNames(flags, func(f *pflag.Flag, v *value) bool { return v.part == setting || f.Name == "fault" || f.Name == "burst" })
}

// settleServices reads the services that a plan's file lists. Where it names no topology, no lock and no deployment, they are all
// that is run.
func (o *options) settleServices() {
	if o.listed == nil {
		return
	}
	if o.listed.Kind != yaml.SequenceNode || len(o.listed.Content) == 0 {
		o.wrong(o.listed, "%s: a list, as in - {visit: POST http://..., count: GET http://...}", servicesKey)
		return
	}
	for _, n := range o.listed.Content {
		s := o.readService(n)
		if s == nil {
			continue
		}
		o.services, o.plan.Services = append(o.services, s), append(o.plan.Services, s.plan)
		o.places[human.Mistake{Setting: servicesKey, Item: fmt.Sprint(len(o.services))}] = o.place(n)
	}
	locking := []string{"topology", "lock", "addr"}
	if slices.ContainsFunc(locking, o.flags.Changed) {
		return
	}
	o.plan.Topologies, o.plan.Locks, o.plan.Scenarios = nil, nil, nil
	for _, name := range append(locking, scenarioFlag) {
		if f := o.flags.Lookup(name); f != nil {
			f.Value.(*value).text = "" // a plan that is printed does not name them either
		}
	}
}

// readService reads a service of a plan's file; nil if it is none. What is wrong with it is a mistake with its place.
func (o *options) readService(n *yaml.Node) *options {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		o.wrong(n, "a service is a list of NAME: VALUE, as in {visit: POST http://..., count: GET http://...}")
		return nil
	}
	s := &options{flags: newFlags(), file: o.file, origins: map[string]string{}, places: map[human.Mistake]string{}}
	s.plan = visiting(o.plan)
	s.plan.Services, s.plan.Attach = nil, attach.Flags{}
	s.planFlags()
	for name, node := range o.keysOf(n, " of a service", serviceSettings(s.flags)) {
		items, err := o.itemsOf(node, s.flags.Lookup(name).Value.(*value))
		if err != nil {
			o.wrong(node, "%s: %v", name, err)
		}
		s.set(name, entry{items, o.place(node)})
	}
	if usage, ok := s.placed(s.invalid()).(*harness.UsageError); ok {
		o.mistakes.Add(usage.Mistakes...)
	}
	return s
}

// writeServices writes the services as a plan has them, with the origin of each setting.
func (o *options) writeServices(p *human.Printer) {
	if len(o.services) > 0 {
		p.Line("%-40s # %s", servicesKey+":", o.place(o.listed))
	}
	for _, s := range o.services {
		first := "    - "
		for _, name := range serviceSettings(s.flags) {
			if origin := s.origins[name]; origin != "" {
				writeSetting(p, first, "      ", name, s.flags.Lookup(name).Value.(*value), origin)
				first = "      "
			}
		}
	}
}

func serviceSchema() map[string]any {
	s := &options{flags: newFlags(), plan: visiting(harness.Plan{})}
	s.planFlags()
	properties := map[string]any{}
	for _, name := range serviceSettings(s.flags) {
		properties[name] = flagSchema(s.flags.Lookup(name))
	}
	return map[string]any{
		"description": "services that lock by themselves, each visited under the load of the plan",
		"type":        "array", "items": objectSchema(properties, "visit", "count"),
	}
}

// repeatService writes the command that visits one service of a plan again.
func repeatService(root *cobra.Command, p harness.Plan, name string) string {
	http, _, err := root.Root().Find([]string{"http"})
	i := slices.IndexFunc(p.Services, func(s harness.Plan) bool { return s.Service.Name() == name })
	if err != nil || i < 0 {
		return ""
	}
	return repeat(http, p.Services[i])
}
