package cli

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"hammerlock/internal/harness"
	"hammerlock/internal/human"
)

// mapped is a key of a mapping in a plan's file, with its value.
type mapped struct {
	key  string
	node *yaml.Node
	text string // a list has commas in between
}

// settingsOf are those of a mapping. Values that are neither text nor lists of it are mistakes.
func (o *options) settingsOf(n *yaml.Node, of string, good []string) (all []mapped) {
	for name, node := range o.keysOf(n, of, good) {
		if texts, isText := textsOf(node); isText {
			all = append(all, mapped{name, node, strings.Join(texts, ",")})
		} else {
			o.wrong(node, "%s: it takes a value", name)
		}
	}
	return all
}

// keysOf yields the keys of a mapping with their values. Unknown keys, and keys that come twice, are mistakes.
func (o *options) keysOf(n *yaml.Node, of string, good []string) iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		seen := map[string]bool{}
		for pair := range slices.Chunk(n.Content, 2) {
			name := current(pair[0].Value)
			switch {
			case !slices.Contains(good, name):
				o.wrong(pair[0], "%s: no such setting%s%s", name, of, human.Meant(name, good))
			case seen[name]:
				o.wrong(pair[0], "%s: it is set above already", name)
			case !yield(name, pair[1]):
				return
			}
			seen[name] = true
		}
	}
}

// textsOf are the texts of a node: one, or those of a list.
func textsOf(n *yaml.Node) (texts []string, ok bool) {
	switch {
	case n.Kind == yaml.AliasNode:
		return textsOf(n.Alias)
	case n.Kind == yaml.ScalarNode:
		return []string{n.Value}, n.Tag != "!!null"
	case n.Kind != yaml.SequenceNode:
		return nil, false
	}
	for _, x := range n.Content {
		if x.Kind != yaml.ScalarNode {
			return nil, false
		}
		texts = append(texts, x.Value)
	}
	return texts, true
}

// readPhases reads the list of phases in a plan's file. What is wrong with it is a mistake; then the flag is not set, but the
// plan has the phases, so that what speaks of them can be checked as well.
func (o *options) readPhases(n *yaml.Node) []item {
	before := len(o.mistakes)
	var phases []harness.Phase
	for _, x := range n.Content {
		if x.Kind == yaml.AliasNode {
			x = x.Alias
		}
		switch x.Kind {
		case yaml.ScalarNode:
			p, wrong := parsePhase(x.Value)
			for _, m := range wrong {
				o.wrong(x, "%s", m)
			}
			phases = append(phases, p)
			o.places[human.Mistake{Setting: phasesFlag, Item: p.Called()}] = o.place(x)
		case yaml.MappingNode:
			phases = append(phases, o.readPhase(x))
		default:
			o.wrong(x, "a phase is a list of NAME: VALUE, as in {phase: steady, duration: 10s, rate: 100/s}")
		}
	}
	if len(o.mistakes) > before {
		o.plan.Phases = phases
		return nil
	}
	return []item{{text: phasesText(phases), at: o.place(n)}}
}

// readPhase reads one phase, and notes where it is for those who find something wrong with it later.
func (o *options) readPhase(n *yaml.Node) (p harness.Phase) {
	at := map[string]string{}
	bad := map[string]bool{}
	for _, s := range o.settingsOf(n, " of a phase", phaseKeyNames()) {
		k := slices.IndexFunc(phaseKeys, func(k phaseKey) bool { return k.name == s.key })
		at[s.key] = o.place(s.node)
		if err := phaseKeys[k].set(&p, s.text); err != nil {
			o.wrong(s.node, "%s %s: %v", s.key, s.text, err)
			bad[s.key] = true
		}
	}
	if p.Kind == "" {
		o.wrong(n, "phase: what is it for? There is %s", strings.Join(harness.PhaseKinds, ", "))
	}
	for _, m := range p.Mistakes() {
		if place, ok := at[m.Key]; !bad[m.Key] && !bad["phase"] && p.Kind != "" {
			if !ok {
				place = o.place(n)
			}
			o.mistake("", "%s: %s", place, m.Text)
		}
	}
	p.Duration = cmp.Or(p.Duration, time.Hour) // for those who look on: what happens in it has time to
	of := human.Mistake{Setting: phasesFlag, Item: p.Called()}
	o.places[of] = o.place(n)
	for key, place := range at {
		o.places[of.In(of.Item, key)] = place
	}
	return p
}

// gateKeys are the settings of a gate in a plan's file.
var gateKeys = []string{"phase", "gate", "abort"}

// readGates reads the list of gates in a plan's file: texts, or each with its phase and whether it ends a run early.
func (o *options) readGates(n *yaml.Node) (items []item) {
	for _, x := range n.Content {
		if texts, ok := textsOf(x); ok && len(texts) == 1 {
			items = append(items, item{text: texts[0], at: o.place(x)})
			continue
		}
		if x.Kind != yaml.MappingNode {
			o.wrong(x, "a gate is a text, or a list of NAME: VALUE, as in {phase: steady, gate: response.p99<20ms}")
			continue
		}
		var phase, gate, abort, place = "", "", "", o.place(x)
		for _, s := range o.settingsOf(x, " of a gate", gateKeys) {
			switch s.key {
			case "phase":
				phase = s.text + ":"
			case "gate":
				gate, place = strings.ReplaceAll(s.text, " ", ""), o.place(s.node)
			default:
				is, err := strconv.ParseBool(s.text)
				if err != nil {
					o.wrong(s.node, "abort %s: true or false", s.text)
				} else if is {
					abort = " abort"
				}
			}
		}
		if gate == "" {
			o.mistake("", "%s: gate: what must hold, as in response.p99<20ms?", place)
			continue
		}
		items = append(items, item{text: phase + gate + abort, at: place})
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
		if at := o.places[human.Mistake{Setting: phasesFlag, Item: phase.Called()}]; at != "" {
			line += " # " + at
		}
		p.Line("%s", line)
	}
}

func phaseSchema() map[string]any {
	properties := map[string]any{}
	for _, k := range phaseKeys {
		v := value{kind: k.kind}
		if k.name == "phase" {
			v.enum = harness.PhaseKinds
		}
		s := v.schema()
		s["description"] = k.usage
		properties[k.name] = s
	}
	return objectSchema(properties, "phase", "duration")
}

func gateSchema() map[string]any {
	about := func(kind, text string) map[string]any { return map[string]any{"type": kind, "description": text} }
	return objectSchema(map[string]any{
		gateKeys[0]: about("string", "the phase that it is about (default: the whole run)"),
		gateKeys[1]: about("string", "what must hold, as in response.p99<20ms"),
		gateKeys[2]: about("boolean", "a run that does not meet it ends early"),
	}, gateKeys[1])
}

// settleLoad reports what does nothing beside phases, and makes a run as long as its trace unless something else is said.
func (o *options) settleLoad() {
	o.besidePhases()
	w := &o.plan.Workload
	if len(w.Trace) == 0 {
		return
	}
	say := func(name string, d time.Duration) {
		if f := o.flags.Lookup(name); f != nil && !f.Changed {
			_ = f.Value.Set(d.String())
			f.Changed, o.origins[name] = true, string(w.Arrivals)
		}
	}
	say("warmup", 0)
	say("duration", (w.Trace[len(w.Trace)-1] - o.plan.Warmup + time.Millisecond).Round(time.Millisecond))
}
