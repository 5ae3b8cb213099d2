package results

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/human"
)

// Card is what a library can show of a verdict, with all that it takes to repeat it.
type Card struct {
	Judged  []Judgement // of scenarios
	Runs    []Run
	Whole   Whole
	Command string // repeats all of it
}

// row is what was found of a lock on a topology.
type row struct {
	lock, topology      string
	passed, failed, and []string // the names of scenarios; and: those that are undecided
}

// word says the status in the words of a card.
func word(failed, undecided bool) string {
	switch {
	case failed:
		return "FAIL"
	case undecided:
		return "undecided"
	}
	return "pass"
}

// rows are those of a card, in the order of the runs.
func (c *Card) rows() (all []*row) {
	for i := range c.Judged {
		j := &c.Judged[i]
		at := slices.IndexFunc(all, func(r *row) bool { return r.lock == j.Lock && r.topology == j.Topology })
		if at < 0 {
			at, all = len(all), append(all, &row{lock: j.Lock, topology: j.Topology})
		}
		name := cmp.Or(j.Scenario, "a run")
		switch status, _ := j.Status(); status {
		case checker.Fail:
			all[at].failed = append(all[at].failed, fmt.Sprintf("%s (%s)", name, Title(j.failure())))
		case checker.Inconclusive:
			all[at].and = append(all[at].and, name)
		default:
			all[at].passed = append(all[at].passed, name)
		}
	}
	return all
}

// some names the first of many, and counts the rest.
func some(names []string) string {
	const most = 3
	if more := len(names) - most; more > 0 {
		names = append(names[:most:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

const commitDigits = 40 // of a suite that was built from no release

// made says by what it was found and when.
func (c *Card) made() (suite, day string) {
	if len(c.Runs) == 0 {
		return "", time.Now().UTC().Format(time.DateOnly)
	}
	if suite = c.Runs[0].Environment.Suite; len(suite) == commitDigits {
		suite = suite[:7]
	}
	return suite, c.Runs[0].Started.UTC().Format(time.DateOnly)
}

// WriteMarkdown writes a block that a document of the library can carry, and that a program can find and replace.
func (c *Card) WriteMarkdown(w io.Writer) error {
	suite, day := c.made()
	p := &human.Printer{W: w}
	p.Line("<!-- hammerlock card -->\n| lock | on | verdict | scenarios |\n|---|---|---|---|")
	for _, r := range c.rows() {
		parts := make([]string, 0, 3)
		for _, of := range []struct {
			what  string
			names []string
		}{{"FAIL", r.failed}, {"undecided", r.and}, {"pass", r.passed}} {
			if len(of.names) > 0 {
				parts = append(parts, some(of.names)+": "+of.what)
			}
		}
		p.Line("| %s | %s | **%s** | %s |", r.lock, r.topology,
			word(len(r.failed) > 0, len(r.and) > 0 && c.Whole.Status != checker.Pass), strings.Join(parts, "; "))
	}
	p.Line("\nHammerlock %s, %s: %s. To repeat it:\n\n    %s\n<!-- end of the card -->", suite, day, c.Whole.Text,
		c.Command)
	return p.Err
}

// WriteBadge writes a small picture that says the verdict in a word.
func (c *Card) WriteBadge(w io.Writer) error {
	_, day := c.made()
	verdict := word(c.Whole.Status == checker.Fail, c.Whole.Status != checker.Pass)
	colour := map[string]string{"pass": "#2e7d32", "FAIL": "#c62828"}[verdict]
	const letter, high = 7, 20 // the width of a letter, about
	left, right := "hammerlock", verdict+" "+day
	a, b := letter*len(left)+10, letter*len(right)+10
	text := html.EscapeString(fmt.Sprintf("%s: %s, %s", left, c.Whole.Text, day))
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" role="img" aria-label="%[3]s"><title>%[3]s</title>
<rect width="%[4]d" height="%[2]d" fill="#444"/><rect x="%[4]d" width="%[5]d" height="%[2]d" fill="%[6]s"/>
<g fill="#fff" font-family="monospace" font-size="11"><text x="5" y="14">%[7]s</text><text x="%[8]d" y="14">%[9]s</text></g></svg>
`, a+b, high, text, a, b, cmp.Or(colour, "#6d4c00"), left, a+5, right)
	return err
}
