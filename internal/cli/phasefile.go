package cli

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/settings"
)

// settlePhases reads the phases in a plan's file. A phase is a period of the run with its own load and faults.
func (o *options) settlePhases() {
	n := o.Lists[phasesKey]
	if n == nil {
		return
	}
	const form = "a list, as in - {phase: steady, duration: 10s, rate: 100/s}"
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		o.Wrong(n, "%s: %s", phasesKey, form)
		return
	}
	for _, x := range n.Content {
		if x.Kind == yaml.AliasNode {
			x = x.Alias
		}
		if x.Kind != yaml.MappingNode {
			o.Wrong(x, "%s: %s", phasesKey, form)
			continue
		}
		o.plan.Phases = append(o.plan.Phases, o.readPhase(x))
	}
	o.plan.File, o.Origins[phasesKey] = o.File, o.Place(n)
}

// readPhase reads one phase. It also records the line of each setting, for error messages of later checks.
func (o *options) readPhase(n *yaml.Node) (p harness.Phase) {
	at := map[string]string{}
	bad := map[string]bool{}
	for _, s := range o.SettingsOf(n, " of a phase", phaseKeyNames()) {
		k := slices.IndexFunc(phaseKeys, func(k phaseKey) bool { return k.name == s.Key })
		at[s.Key] = o.Place(s.Node)
		if err := phaseKeys[k].set(&p, s.Text); err != nil {
			o.Wrong(s.Node, "%s %s: %v", s.Key, s.Text, err)
			bad[s.Key] = true
		}
	}
	if p.Kind == "" {
		o.Wrong(n, "phase: what is it for? There is %s", strings.Join(harness.PhaseKinds, ", "))
	}
	for _, m := range p.Mistakes() {
		if place, ok := at[m.Key]; !bad[m.Key] && !bad["phase"] && p.Kind != "" {
			if !ok {
				place = o.Place(n)
			}
			o.Mistake("", "%s: %s", place, m.Text)
		}
	}
	// a duration that is missing was reported above; with a long one, later checks report nothing more about it
	p.Duration = cmp.Or(p.Duration, time.Hour)
	of := human.Mistake{Setting: phasesKey, Item: p.Called()}
	o.Places[of] = o.Place(n)
	for key, place := range at {
		o.Places[of.In(of.Item, key)] = place
	}
	return p
}

// writePhases writes phases as in a plan's file. Each is one line, with its origin as a comment.
func (o *options) writePhases(p *human.Printer) {
	if len(o.plan.Phases) > 0 {
		p.Line("%-40s # %s", phasesKey+":", o.Origins[phasesKey])
	}
	for i := range o.plan.Phases {
		phase := &o.plan.Phases[i]
		var parts []string
		for _, k := range phaseKeys {
			text := k.text(phase)
			if strings.Contains(text, ",") {
				text = "[" + strings.ReplaceAll(text, ",", ", ") + "]"
			}
			if text != "" {
				parts = append(parts, k.name+": "+text)
			}
		}
		line := "    - {" + strings.Join(parts, ", ") + "}"
		if at := o.Places[human.Mistake{Setting: phasesKey, Item: phase.Called()}]; at != "" {
			line += " # " + at
		}
		p.Line("%s", line)
	}
}

func phaseSchema() map[string]any {
	properties := map[string]any{}
	for _, k := range phaseKeys {
		v := settings.Value{Kind: k.kind}
		if k.name == "phase" {
			v.Enum = harness.PhaseKinds
		}
		s := v.Schema()
		s["description"] = k.usage
		properties[k.name] = s
	}
	return map[string]any{"description": "the load in phases, in place of warmup, duration and fault",
		"type": "array", "items": settings.ObjectSchema(properties, "phase", "duration")}
}

// settleLoad reports settings that have no effect together with phases. If visits come from a trace, a recorded list
// of times, the run lasts as long as the trace, unless the user set the duration.
func (o *options) settleLoad() {
	o.besidePhases()
	w := &o.plan.Workload
	if len(w.Trace) == 0 {
		return
	}
	say := func(name string, d time.Duration) {
		if f := o.Flags.Lookup(name); f != nil && !f.Changed {
			_ = f.Value.Set(d.String())
			f.Changed, o.Origins[name] = true, string(w.Arrivals)
		}
	}
	say("warmup", 0)
	say("duration", (w.Trace[len(w.Trace)-1] - o.plan.Warmup + time.Millisecond).Round(time.Millisecond))
}
