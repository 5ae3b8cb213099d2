package cli

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/settings"
)

// readPhases reads the list of phases in a plan's file. What is wrong with it is a mistake; then the flag is not set,
// but the plan has the phases, so that what speaks of them can be checked as well.
func (o *options) readPhases(n *yaml.Node) []settings.Item {
	before := len(o.Mistakes)
	var phases []harness.Phase
	for _, x := range n.Content {
		if x.Kind == yaml.AliasNode {
			x = x.Alias
		}
		switch x.Kind {
		case yaml.ScalarNode:
			p, wrong := parsePhase(x.Value)
			for _, m := range wrong {
				o.Wrong(x, "%s", m)
			}
			phases = append(phases, p)
			o.Places[human.Mistake{Setting: phasesFlag, Item: p.Called()}] = o.Place(x)
		case yaml.MappingNode:
			phases = append(phases, o.readPhase(x))
		default:
			o.Wrong(x, "a phase is a list of NAME: VALUE, as in {phase: steady, duration: 10s, rate: 100/s}")
		}
	}
	if len(o.Mistakes) > before {
		o.plan.Phases = phases
		return nil
	}
	return []settings.Item{{Text: phasesText(phases), At: o.Place(n)}}
}

// readPhase reads one phase, and notes where it is for those who find something wrong with it later.
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
	p.Duration = cmp.Or(p.Duration, time.Hour) // for those who look on: what happens in it has time to
	of := human.Mistake{Setting: phasesFlag, Item: p.Called()}
	o.Places[of] = o.Place(n)
	for key, place := range at {
		o.Places[of.In(of.Item, key)] = place
	}
	return p
}

// gateKeys are the settings of a gate in a plan's file.
var gateKeys = []string{"phase", "gate", "abort"}

// readGates reads the list of gates in a plan's file: texts, or each with its phase and whether it ends a run early.
func (o *options) readGates(n *yaml.Node) (items []settings.Item) {
	for _, x := range n.Content {
		if texts, ok := settings.TextsOf(x); ok && len(texts) == 1 {
			items = append(items, settings.Item{Text: texts[0], At: o.Place(x)})
			continue
		}
		if x.Kind != yaml.MappingNode {
			o.Wrong(x, "a gate is a text, or a list of NAME: VALUE, as in {phase: steady, gate: response.p99<20ms}")
			continue
		}
		var phase, gate, abort, place = "", "", "", o.Place(x)
		for _, s := range o.SettingsOf(x, " of a gate", gateKeys) {
			switch s.Key {
			case "phase":
				phase = s.Text + ":"
			case "gate":
				gate, place = strings.ReplaceAll(s.Text, " ", ""), o.Place(s.Node)
			default:
				is, err := strconv.ParseBool(s.Text)
				if err != nil {
					o.Wrong(s.Node, "abort %s: true or false", s.Text)
				} else if is {
					abort = " abort"
				}
			}
		}
		if gate == "" {
			o.Mistake("", "%s: gate: what must hold, as in response.p99<20ms?", place)
			continue
		}
		items = append(items, settings.Item{Text: phase + gate + abort, At: place})
	}
	return items
}

// writePhases writes phases as a plan has them, one a line, each with its origin.
func (o *options) writePhases(p *human.Printer, origin string) {
	p.Line("%-40s # %s", phasesFlag+":", origin)
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
		if at := o.Places[human.Mistake{Setting: phasesFlag, Item: phase.Called()}]; at != "" {
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
	return settings.ObjectSchema(properties, "phase", "duration")
}

func gateSchema() map[string]any {
	about := func(kind, text string) map[string]any { return map[string]any{"type": kind, "description": text} }
	return settings.ObjectSchema(map[string]any{
		gateKeys[0]: about("string", "the phase that it is about (default: the whole run)"),
		gateKeys[1]: about("string", "what must hold, as in response.p99<20ms"),
		gateKeys[2]: about("boolean", "a run that does not meet it ends early"),
	}, gateKeys[1])
}

// settleLoad reports what does nothing beside phases, and makes a run as long as its trace unless something else is
// said.
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
