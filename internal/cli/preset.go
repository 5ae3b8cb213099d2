package cli

import (
	"strings"

	"hammerlock/topologies"
)

// preset is a setting that another flag implies. It has no effect if the user sets the same setting anywhere.
type preset struct{ name, value string }

// quick has the settings that --quick implies.
var quick = []preset{{"duration", "2s"}, {"warmup", "200ms"}, {"workers", "4"}}

// quickNote tells the user which effects runs with --quick cannot show.
const quickNote = "--quick: 2 s each with 4 workers. Rare pauses, p99.9, waiters among many workers and a " +
	"steady state are not seen: leave --quick out for numbers to keep"

// settlePresets applies --quick and --redis-server embedded.
func (o *options) settlePresets() {
	if o.quick && len(o.plan.Phases) > 0 {
		o.Mistake("quick", ": phases say how long to measure: leave it out, or the phases")
	} else if o.quick {
		o.presets("--quick", quick)
	}
	if o.plan.RedisServer == topologies.EmbeddedName {
		o.presets("--redis-server embedded", o.served())
	}
}

// served returns the settings that servers in this process imply (--redis-server embedded): the topologies that they
// can form, and few workers. With more workers, a run would measure how they wait for a processor.
func (o *options) served() (all []preset) {
	var names []string
	for _, t := range o.plan.Topologies {
		if t.Embeddable() {
			names = append(names, t.Name)
		}
	}
	// a plan with services does not need topologies
	if o.Lists[servicesKey] == nil && 0 < len(names) && len(names) < len(o.plan.Topologies) {
		all = append(all, preset{"topology", strings.Join(names, ",")})
	}
	if o.listing && !o.plan.Verify { // scenarios set the number of workers
		all = append(all, preset{"workers", "4"})
	}
	return all
}

func (o *options) presets(origin string, all []preset) {
	for _, p := range all {
		o.Preset(origin, p.name, p.value)
	}
}
