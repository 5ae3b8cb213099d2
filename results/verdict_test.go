package results

import (
	"bytes"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
)

// TestACauseIsSaidOnce, whether the summary names it first or last.
func TestACauseIsSaidOnce(t *testing.T) {
	for summary, want := range map[string]string{
		"deadlock: page 0 is stuck": "liveness: deadlock: page 0 is stuck",
		"violated once: deadlock":   "liveness: deadlock: violated once",
		"a deadlock":                "liveness: deadlock: a deadlock",
	} {
		if got := sentence(&checker.Verdict{Checker: "liveness", Cause: "deadlock", Summary: summary}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestScenariosAreATable: what was passed says what was strained, what failed when that was certain, and what was not run
// why. Only what was not passed has a block.
func TestScenariosAreATable(t *testing.T) {
	passed := Judgement{Topology: "single", Lock: "lease", Scenario: "contention", Strains: "many workers want one lock",
		Verdicts: []checker.Verdict{{Checker: "activity", Status: checker.Pass, Summary: "10 holds"}}}
	failed := Judgement{Topology: "single", Lock: "lease", Scenario: "crash", Strains: "a holder dies", Verdicts: []checker.Verdict{
		{Checker: "exclusion", Status: checker.Fail, Cause: "overrun", Summary: "two held it", Evidence: []history.Op{{Return: 2 * time.Second}, {Return: time.Second}}},
		{Checker: "release", Status: checker.Fail, Cause: "false-release", Summary: "wrong", Evidence: []history.Op{{Call: 1500 * time.Millisecond, Return: history.Forever}}},
	}}
	var out bytes.Buffer
	err := WriteVerdicts(&out, []Judgement{passed, failed}, []NotRun{{"single", "lease", "renewal", "the lock does not claim that it renews a lease", false}})
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := bytes.Cut(out.Bytes(), []byte("\n\n                         "))
	want := `VERDICT        PROVED
single lease contention  PASS                   many workers want one lock
single lease crash       FAIL           1.50 s  exclusion: overrun: two held it
single lease renewal     NOT RUN                the lock does not claim that it renews a lease
`
	if string(table) != want || bytes.Contains(out.Bytes(), []byte("scenario contention")) || !bytes.Contains(out.Bytes(), []byte("scenario crash")) {
		t.Errorf("got\n%s", out.String())
	}
}
