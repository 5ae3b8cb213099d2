package report

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/human"
	"hammerlock/results"
)

// state is a verdict in a page. It has a word and a sign, because a colour alone is not enough.
type state struct{ Class, Sign, Word string }

func stateOf(s checker.Status) state {
	return map[checker.Status]state{checker.Pass: {"pass", "✓", "PASS"}, checker.Fail: {"fail", "✕", "FAIL"},
		checker.NotJudged: {"plain", "–", "NOT JUDGED"}, checker.Inconclusive: {"unsure", "?", "INCONCLUSIVE"}}[s]
}

func generatorState(g *results.Generator) state {
	s := state{"unsure", "!", string(g.State)}
	if g.State == results.GeneratorOK {
		s.Class, s.Sign = "pass", "✓"
	} else if g.State.Unfit() {
		s.Class, s.Sign = "fail", "✕"
	}
	return s
}

type tableView struct {
	// facts (two columns, name and value), words (more words than numbers) or ops (operations)
	Class, Note string
	Head        []string
	Rows        [][]cellView
}

type cellView struct {
	Text  string
	State *state
	Bar   int    // length of a bar in percent; 0 = no bar
	Link  string // ID of the run to which the cell links; empty = no link
}

// add adds a row of texts and returns it.
func (t *tableView) add(all ...string) []cellView {
	row := make([]cellView, len(all))
	for i, text := range all {
		row[i].Text = human.Unbroken(text)
	}
	t.Rows = append(t.Rows, row)
	return row
}

// addAll adds a map's values in the order of its keys.
func (t *tableView) addAll(prefix string, values map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		t.add(prefix+name, values[name])
	}
}

// facts makes a table of names and values, without empty values.
func facts(pairs ...string) tableView {
	t := tableView{Class: "facts"}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			t.add(pairs[i], pairs[i+1])
		}
	}
	return t
}

// clockText formats a time of the run in microseconds, so that events can be compared.
func clockText(at time.Duration) string {
	if at == history.Forever {
		return "never"
	}
	return fmt.Sprintf("%.6f s", at.Seconds())
}
