package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hammerlock/checker"
	"hammerlock/results"
)

// TestMatrix has a run of each kind, and checks the properties, the failures and the scenarios that were not run.
func TestMatrix(t *testing.T) {
	verdict := func(name string, s checker.Status, cause string) checker.Verdict {
		return checker.Verdict{Checker: name, Status: s, Cause: cause, Summary: "found by " + name}
	}
	failed := verdict("exclusion", checker.Fail, "double-grant")
	failed.Story, failed.Remedy = []string{"w00 and w01"}, "Decide in one command."
	scenario := func(name string, all ...checker.Verdict) results.Run {
		return results.Run{Topology: "single", Lock: "lease", Scenario: name, Command: "verify --scenario " + name,
			Verdicts: all}
	}
	runs := savedOf([]results.Run{
		scenario("good", verdict("activity", checker.Pass, ""), verdict("exclusion", checker.Pass, ""),
			verdict("fencing", checker.NotJudged, "")),
		scenario("bad", verdict("activity", checker.Pass, ""), failed),
		scenario("worse", failed),
		scenario("scant", verdict("activity", checker.Inconclusive, "")),
		{Topology: "single", Lock: "lease", Verdicts: []checker.Verdict{verdict("lost-updates", checker.Pass, "")}},
	})
	beside := Unsaved{Explored: []results.Judgement{{Topology: "memory", Lock: "lease", Scenario: "explore",
		Verdicts: []checker.Verdict{verdict("explore", checker.Pass, "")}}}}
	runs = append(beside.runs(), runs...)
	names, _ := titles(runs)
	m := matrix(runs, names, []results.NotRun{{Topology: "single", Lock: "lease", Scenario: "late",
		Why: "the budget is over", Unasked: true},
		{Topology: "single", Lock: "lease", Scenario: "readers", Why: "it has none"}})
	var got strings.Builder
	for _, row := range m.Table.Rows {
		got.WriteString(row[0].Text)
		for _, c := range row[1:] {
			if c.State != nil {
				got.WriteString(" " + c.State.Word + c.State.Sign)
			} else {
				got.WriteString(" [" + c.Text + "]")
			}
		}
		got.WriteString("\n")
	}
	if want := `single · lease
explore PASS✓ PASS✓ [] [] [] [] [found by explore]
good PASS✓ [] PASS✓ PASS✓ NOT JUDGED– [] [found by activity, 0 overlaps]
bad FAIL✕ [] PASS✓ FAIL✕ [] [] [exclusion: double-grant]
worse FAIL✕ [] [] FAIL✕ [] [] [exclusion: double-grant]
scant INCONCLUSIVE? [] INCONCLUSIVE? [] [] [] [found by activity]
no scenario PASS✓ [] [] [] [] PASS✓ [found by lost-updates]
single lease late NOT RUN [] [] [] [] [] [the budget is over]
`; got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	if f := m.Failures; len(f) != 1 || f[0].Title != "exclusion: double-grant" || len(f[0].In) != 2 ||
		f[0].In[0].Link != "run2" || f[0].Remedy != failed.Remedy || f[0].Means == "" {
		t.Errorf("%+v", f)
	}
	if len(m.Open) != 1 || m.Open[0] != "scant: found by activity" || len(m.NotRun.Rows) != 1 {
		t.Errorf("undecided %q, not run %v", m.Open, m.NotRun.Rows)
	}
	order(t, runs)
}

// order checks the page: the matrix is first, then the failures, then the runs.
func order(t *testing.T, runs []saved) {
	t.Helper()
	var page bytes.Buffer
	if err := writePage(&page, runs, nil); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	matrix, failures := strings.Index(text, `id="matrix"`), strings.Index(text, `id="failures"`)
	if run := strings.Index(text, `<article`); matrix < 0 || failures < matrix || run < failures {
		t.Errorf("the matrix is at %d, the failures at %d, the first run at %d", matrix, failures, run)
	}
	for _, no := range []string{`id="compare"`, "Who held the lock</h3>"} {
		if strings.Contains(text, no) {
			t.Errorf("the page has %s: scenarios are not compared, and nothing was kept", no)
		}
	}
}

// TestAnAttemptThatWasRepeatedIsLeftOut of a page with several runs.
func TestAnAttemptThatWasRepeatedIsLeftOut(t *testing.T) {
	out := t.TempDir()
	var dirs []string
	for i := range 3 {
		dirs = append(dirs, crowd{workers: 2, visits: 20, seed: 1}.save(t, out, func(r *results.Run) {
			r.Name, r.Scenario = fmt.Sprintf("run-%d", i), []string{"crash", "crash", "late"}[i]
			if i == 1 {
				r.Before, r.Earlier = []string{"too few holds"}, []string{"run-0"}
			}
		}))
	}
	path := filepath.Join(out, File)
	if err := Write(path, dirs, Unsaved{}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "2 runs: 2 passed") ||
		!strings.Contains(string(text), "Attempt 1 was inconclusive: too few holds") {
		t.Errorf("the page counts the attempt, or does not name it (%v)", err)
	}
}
