package cli

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"hammerlock/checker"
	"hammerlock/internal/settings"
	"hammerlock/results"
	"hammerlock/results/compare"
	"hammerlock/scenarios"
)

// gateFlag declares --gate, which users may give several times. A gate is an assertion about a metric.
func (o *options) gateFlag(usage string, set func(string) error) {
	v := o.Add(flag(session, "gate", usage), "expr", "", set)
	v.Complete, v.Repeatable = settings.CompleteList(allMetrics.Names(), true), true
	v.Nodes, v.Object = o.readGates, gateSchema
}

func (o *options) gate(text string) error {
	g, err := compare.ParseGate(text)
	if err == nil && g.Relative {
		err = errors.New("a change needs two sides: use bench ab or bench compare")
	}
	o.gates = append(o.gates, g)
	return err
}

// gateJudgements turns results of gates into judgements, one for each topology and lock, with a verdict for each
// gate.
func gateJudgements(gates []compare.GateResult) (all []results.Judgement) {
	at := map[string]int{}
	for _, g := range gates {
		key := g.Topology + " " + g.Lock
		if _, known := at[key]; !known {
			at[key] = len(all)
			all = append(all, results.Judgement{Topology: cmp.Or(g.Topology, "comparison"),
				Lock: cmp.Or(g.Lock, "gates"), Faults: []string{}})
		}
		j := &all[at[key]]
		status, cause := checker.Inconclusive, string(g.Status)
		switch g.Status {
		case compare.GatePass:
			status, cause = checker.Pass, ""
		case compare.GateFail:
			status, cause = checker.Fail, "gate"
		}
		j.Verdicts = append(j.Verdicts, checker.Stated(g.Gate, status, cause, g.Gate+": "+g.Summary))
	}
	return all
}

// leastLook is the shortest measurement after which a failed gate may end a run early.
const leastLook = time.Second

// hopeless returns a function that checks a run in progress. The function returns the reason to end the run early, or
// "" to continue. hopeless itself returns nil if no gate is set to end runs early.
func (o *options) hopeless() func(*results.Run) string {
	gates := slices.DeleteFunc(slices.Clone(o.gates), func(g compare.Gate) bool { return !g.Abort })
	if len(gates) == 0 {
		return nil
	}
	return func(run *results.Run) string {
		for i := range gates {
			part := run
			if phase := gates[i].Phase; phase != "" {
				part = run.In(phase)
			}
			if part == nil || time.Duration(part.Measured) < leastLook {
				continue
			}
			if r := gates[i].Check([]*results.Run{run}); r.Status == compare.GateFail {
				return "gate " + gates[i].Text + ": " + r.Summary
			}
		}
		return ""
	}
}

// gateKeys are the keys of a gate in a plan's file.
var gateKeys = []string{"phase", "gate", "abort"}

// readGates reads the gates in a plan's file. A gate is a plain text, or an object with the keys gateKeys.
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

func gateSchema() map[string]any {
	about := func(kind, text string) map[string]any { return map[string]any{"type": kind, "description": text} }
	return settings.ObjectSchema(map[string]any{
		gateKeys[0]: about("string", "the phase that it is about (default: the whole run)"),
		gateKeys[1]: about("string", "what must hold, as in response.p99<20ms"),
		gateKeys[2]: about("boolean", "a run that does not meet it ends early"),
	}, gateKeys[1])
}

// strictFlag declares --strict, which requires a verdict on every scenario.
func (o *options) strictFlag() {
	o.Toggle(flag(session, "strict",
		"exit 3 if any scenario is undecided; else at least nine in ten must have passed, and safety\n"+
			"under contention, late holders, crashes and lost answers"), "", &o.strict)
}

// weigh combines judgements into one verdict. The argument not lists scenarios that were not run. The argument cut is
// the error that ended the command early; nil = it was not ended early.
func (o *options) weigh(all []results.Judgement, not []results.NotRun, cut error) results.Whole {
	classes, why := scenarios.Classes, ""
	if o.strict {
		classes = nil
	}
	if cut != nil {
		why = cut.Error()
	}
	return results.Weigh(all, not, why, classes)
}
