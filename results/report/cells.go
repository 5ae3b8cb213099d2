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

// state shows a verdict in a page: by a colour (Class), a sign and a word, because some readers cannot tell colours.
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
	// Class is a style: facts (names and values), words (long texts) or ops (operations).
	Class, Note string
	Head        []string
	Rows        [][]cellView
}

type cellView struct {
	Text  string
	State *state
	Bar   int    // length of the bar behind the text in percent; 0 = no bar
	Link  string // ID of the run that a click shows; empty = no link
}

// add adds a row with these texts and returns the row.
func (t *tableView) add(all ...string) []cellView {
	row := make([]cellView, len(all))
	for i, text := range all {
		row[i].Text = human.Unbroken(text)
	}
	t.Rows = append(t.Rows, row)
	return row
}

// addAll adds a row for each value of the map, in the order of the keys.
func (t *tableView) addAll(prefix string, values map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		t.add(prefix+name, values[name])
	}
}

// facts makes a table of names and values from pairs of arguments. It leaves out empty values.
func facts(pairs ...string) tableView {
	t := tableView{Class: "facts"}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			t.add(pairs[i], pairs[i+1])
		}
	}
	return t
}

// clockText formats a time of the run. It shows microseconds, so that the order of close events is visible.
func clockText(at time.Duration) string {
	if at == history.Forever {
		return "never"
	}
	return fmt.Sprintf("%.6f s", at.Seconds())
}
