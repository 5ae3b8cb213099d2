package results

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/human"
)

// Expected is a row of the matrix: what the catalogue expects of a lock on a topology, and what the runs found.
type Expected struct {
	Lock     string         `json:"lock"`
	Topology string         `json:"topology"`
	Under    string         `json:"under,omitempty"`  // fault or scenario in which the lock must fail; empty = any
	Causes   []string       `json:"causes,omitempty"` // the lock must fail with one of these; empty = it must pass
	Passes   bool           `json:"passes,omitempty"` // the lock may also pass
	Seed     uint64         `json:"seed"`
	Met      checker.Status `json:"met"`
	Found    string         `json:"found"`              // the expected cause if it was found, or else the actual result
	Scenario string         `json:"scenario,omitempty"` // scenario that showed Found, or "explore"
	Passed   int            `json:"passed"`             // number of scenarios, or runs, that passed
	Open     []string       `json:"undecided,omitempty"`
	Took     time.Duration  `json:"took_ns"`
	Saved    string         `json:"saved,omitempty"` // the run that showed Found
	Command  string         `json:"command"`
}

// Met compares a lock's verdicts with the expected causes; without causes the lock must pass. It returns Pass if the
// verdicts are as expected. If the lock failed with an expected cause, shown is this cause; otherwise it is empty.
// Only the first failure counts, because users see that one.
func Met(causes []string, status checker.Status, verdicts []checker.Verdict) (met checker.Status, shown string) {
	j := Judgement{Verdicts: verdicts}
	if v := j.failure(); v != nil && slices.Contains(causes, v.Cause) {
		return checker.Pass, v.Cause
	}
	if len(causes) > 0 && status != checker.Inconclusive {
		return checker.Fail, ""
	}
	return status, ""
}

// Want describes the expected result in words.
func (x *Expected) Want() string {
	if len(x.Causes) == 0 {
		return "pass"
	}
	want := x.Causes
	if x.Passes {
		want = append(slices.Clip(want), "pass")
	}
	return strings.Join(want, " or ")
}

// Take fills in the result from all judgements of the lock so far; whole is their common verdict. It returns true if
// one of the judgements shows an expected cause, so that no more runs are needed.
func (x *Expected) Take(all []Judgement, whole Whole) bool {
	x.Passed, x.Open, x.Found, x.Scenario = 0, nil, strings.ToLower(whole.Status.String()), ""
	x.Met, _ = Met(x.Causes, whole.Status, nil)
	if x.Passes && whole.Status == checker.Pass {
		x.Met = checker.Pass
	}
	for i := range all {
		j := &all[i]
		status, _ := j.Status()
		if met, shown := Met(x.Causes, status, j.Verdicts); shown != "" {
			x.Met, x.Found, x.Scenario = met, shown, j.Scenario
			x.Saved, x.Command = j.Saved, j.Command
			return true
		}
		switch status {
		case checker.Pass:
			x.Passed++
		case checker.Inconclusive:
			x.Open = append(x.Open, j.Scenario)
		default:
			if v := j.failure(); x.Scenario == "" {
				x.Found, x.Scenario, x.Saved, x.Command = v.Cause, j.Scenario, j.Saved, j.Command
			}
		}
	}
	if x.Met == checker.Pass && x.Passed == 0 {
		x.Met, x.Found = checker.Inconclusive, "nothing judged"
	}
	return false
}

// expectationChecker is shown where other verdicts have the name of their checker.
const expectationChecker = "expectation"

// Judgement returns the result in the form that CI systems read: it fails if the result is not as expected.
func (x *Expected) Judgement() Judgement {
	cause := ""
	if x.Met == checker.Fail {
		cause = "not as expected"
	}
	return Judgement{
		Topology: x.Topology, Lock: x.Lock, Scenario: x.Under, Faults: []string{}, Command: x.Command, Saved: x.Saved,
		Verdicts: []checker.Verdict{checker.Stated(expectationChecker, x.Met, cause, x.text())}, Took: x.Took,
	}
}

func (x *Expected) text() string {
	text := fmt.Sprintf("expected %s, found %s", x.Want(), x.Found)
	if x.Scenario != "" {
		text += " in " + x.Scenario
	}
	if len(x.Open) > 0 {
		text += "; undecided: " + strings.Join(x.Open, ", ")
	}
	return text
}

var metWords = map[checker.Status]string{
	checker.Pass: "as expected", checker.Fail: "NOT AS EXPECTED", checker.Inconclusive: "undecided",
}

// Line describes the result in one line, to show progress.
func (x *Expected) Line() string {
	name := strings.TrimSpace(x.Topology + " " + x.Lock + " " + x.Under)
	return fmt.Sprintf("%s: %s: %s (%.1f s)", name, metWords[x.Met], x.text(), x.Took.Seconds())
}

// fewOpen limits the number of scenarios without a verdict that a cell of the table names.
const fewOpen = 3

func (x *Expected) cells() []string {
	found, scenario := x.Found, x.Scenario
	if len(x.Causes) == 0 {
		found = fmt.Sprintf("%s, %d of %d", found, x.Passed, x.Passed+len(x.Open))
	}
	if n := len(x.Open); n > fewOpen {
		scenario = cmp.Or(scenario, fmt.Sprintf("%s and %d more?", strings.Join(x.Open[:fewOpen], ", "), n-fewOpen))
	} else if n > 0 {
		scenario = cmp.Or(scenario, strings.Join(x.Open, ", ")+"?")
	}
	return []string{
		"`" + x.Lock + "`", cmp.Or(x.Topology, "-"), cmp.Or(x.Under, "-"), x.Want(), found, cmp.Or(scenario, "-"),
		fmt.Sprintf("%.1f", x.Took.Seconds()),
	}
}

var expectedHead = []string{"lock", "topology", "under", "expected", "found", "scenario", "took"}

// WriteExpected writes a table with a row for each expectation. Below it come those that were not met, each with the
// command that repeats the run.
func WriteExpected(w io.Writer, all []Expected) error {
	p := &human.Printer{W: w}
	row := func(c []string, result string) []string { // a narrow terminal does not show the last column
		return []string{c[0], c[1], c[2], result, c[4], c[5], c[6], c[3]}
	}
	rows := [][]string{row(expectedHead, "result")}
	for i, head := range rows[0] {
		rows[0][i] = strings.ToUpper(head)
	}
	var count [3]int
	var took time.Duration
	for i := range all {
		x := &all[i]
		cells := x.cells()
		cells[0] = x.Lock
		rows = append(rows, row(cells, metWords[x.Met]))
		count[slices.Index(metOrder, x.Met)]++
		took += x.Took
	}
	p.Table(rows, 3)
	for i := range all {
		if x := &all[i]; x.Met != checker.Pass {
			p.Line("")
			p.Fact(strings.ToUpper(metWords[x.Met]), x.Topology+" "+x.Lock+": "+x.text())
			p.Maybe("saved", x.Saved)
			p.Maybe("repeat", x.Command)
		}
	}
	p.Line("\n%d of %d as expected, %d not, %d undecided; %.0f s", count[2], len(all), count[0], count[1],
		took.Seconds())
	return p.Err
}

// metOrder sorts results: the most important one for a reader comes first.
var metOrder = []checker.Status{checker.Fail, checker.Inconclusive, checker.Pass}

const (
	expectedBegin  = "<!-- generated: expected -->\n"
	expectedEnd    = "<!-- end -->\n"
	expectedIntro  = "# What every lock has shown\n\n"
	notMeasuredYet = "not measured yet"
)

// PutExpected returns the document with a new table: a row for each element of wanted. The result in a row comes
// from the first of these sources that has one:
//
// 1. A new result in all; made is the date of these results. An element of wanted without a topology matches any.
//
// 2. The row of the old table, if it has the same expectation.
//
// Otherwise the row says that nothing was measured yet.
func PutExpected(document string, all, wanted []Expected, made string) string {
	before, rest, found := strings.Cut(document, expectedBegin)
	if !found {
		before, rest = strings.TrimSuffix(document, "\n")+"\n", expectedEnd
		if document == "" {
			before = expectedIntro
		}
	}
	old, after, _ := strings.Cut(rest, expectedEnd)
	columns := append(slices.Clone(expectedHead), "result", "measured")
	rows := [][]string{columns, slices.Repeat([]string{"---"}, len(columns))}
	var given [][]string
	// If the same expectation was tested with several seeds, the worst result is shown.
	worst := func(a, b Expected) int { return slices.Index(metOrder, a.Met) - slices.Index(metOrder, b.Met) }
	for _, x := range slices.SortedStableFunc(slices.Values(all), worst) {
		given = append(given, append(x.cells(), metWords[x.Met], made))
	}
	for line := range strings.Lines(old) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		if len(cells) == len(columns) && !strings.Contains(line, notMeasuredYet) {
			given = append(given, human.Names(cells, strings.TrimSpace))
		}
	}
	open := 0
	for i := range wanted {
		want := wanted[i].cells()
		n := slices.IndexFunc(given, func(row []string) bool {
			return row[0] == want[0] && (row[1] == want[1] || want[1] == "-") && row[2] == want[2] && row[3] == want[3]
		})
		if n < 0 {
			n, given = len(given), append(given, slices.Concat(want[:4], []string{notMeasuredYet, "-", "-", "-", "-"}))
			open++
		}
		rows = append(rows, given[n])
	}
	text := before + expectedBegin
	for _, row := range rows {
		text += "| " + strings.Join(row, " | ") + " |\n"
	}
	return text + fmt.Sprintf("\n%d of %d measured.\n", len(wanted)-open, len(wanted)) + expectedEnd + after
}
