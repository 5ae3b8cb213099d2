package results

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"hammerlock/checker"
)

// TestJUnitTellsCasesApart reads the file as a CI system does: by names, which must be the same in each run.
func TestJUnitTellsCasesApart(t *testing.T) {
	j := Judgement{Topology: "single", Lock: "lease", Took: 3 * time.Second, Started: time.Unix(0, 0),
		Verdicts: []checker.Verdict{
			{Checker: "lost-updates", Status: checker.Pass}, {Checker: "response.p99<50ms", Status: checker.Fail,
				Cause: "gate", Summary: "60 ms"},
			{Checker: "handoff.p50<1ms", Status: checker.Inconclusive},
		}}
	var text bytes.Buffer
	if err := WriteJUnit(&text, []Judgement{j, j}); err != nil {
		t.Fatal(err)
	}
	var report junitSuites
	if err := xml.Unmarshal(text.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	seen, suites := map[string]bool{}, map[string]bool{}
	for _, s := range report.Suites {
		suites[s.Name] = true
		if s.Tests != 3 || s.Failures != 1 || s.Skipped != 1 || s.Time != "3.000" || s.Cases[0].Time != "3.000" ||
			s.Cases[1].Time != "0.000" || s.Started != "1970-01-01T00:00:00" {
			t.Errorf("got %+v", s)
		}
		for _, c := range s.Cases {
			seen[c.Class+" "+c.Name] = true
		}
	}
	if !suites["single lease"] || !suites["single lease #2"] {
		t.Errorf("got suites %v", suites)
	}
	if len(seen) != 6 || !seen["hammerlock.single.lease response.p99<50ms"] ||
		!seen["hammerlock.single.lease response.p99<50ms #2"] {
		t.Errorf("got %v", seen)
	}
}

// TestSummaryAndAnnotationsAreLimited has more failures than GitHub shows.
func TestSummaryAndAnnotationsAreLimited(t *testing.T) {
	var all []Judgement
	for i := range 3000 {
		all = append(all, Judgement{Topology: "single", Lock: fmt.Sprint("lock", i), Command: "repeat",
			Verdicts: []checker.Verdict{
				{Checker: "exclusion", Status: checker.Fail, Cause: "service-loss", Summary: strings.Repeat("µ", 300),
					Story: []string{"it was so"}}}})
	}
	var summary, notes bytes.Buffer
	if WriteSummary(&summary, all) != nil || WriteAnnotations(&notes, all) != nil {
		t.Fatal("not written")
	}
	if n := summary.Len(); n > 512<<10 || n < 500<<10 || !utf8.Valid(summary.Bytes()) ||
		!strings.HasSuffix(summary.String(), "(cut)\n") {
		t.Errorf("the summary has %d bytes", n)
	}
	if n := strings.Count(notes.String(), "::error "); n != 10 {
		t.Errorf("%d annotations", n)
	}
}

// TestOneMistakeIsOneAnnotation: several properties and scenarios show the same mistake of a lock. It gets one
// annotation. The mistake of another lock gets its own.
func TestOneMistakeIsOneAnnotation(t *testing.T) {
	failing := []checker.Verdict{
		{Checker: "exclusion", Status: checker.Fail, Cause: "foreign-release", Summary: "two held it",
			Story: []string{"so it was"}},
		{Checker: "lost-updates", Status: checker.Fail, Cause: "exclusion", Summary: "1 lost"},
		{Checker: "linearizable", Status: checker.Fail, Cause: "not-linearizable", Summary: "no order"},
	}
	var all []Judgement
	for _, lock := range []string{"mine", "other"} {
		for _, scenario := range []string{"late-commands", "slow-grant"} {
			all = append(all, Judgement{Topology: "single", Lock: lock, Scenario: scenario, Command: "verify it",
				Verdicts: failing})
		}
	}
	var notes strings.Builder
	if err := WriteAnnotations(&notes, all); err != nil {
		t.Fatal(err)
	}
	want := "::error title=single mine%3A foreign-release::two held it%0Aso it was%0Arepeat: verify it%0A" +
		"also single mine late-commands: lost-updates: exclusion: 1 lost%0A" +
		"also single mine late-commands: linearizable: not-linearizable: no order\n"
	if got, both := notes.String(), want+strings.ReplaceAll(want, "mine", "other"); got != both {
		t.Errorf("got\n%swant\n%s", got, both)
	}
}

// TestEveryCauseIsToldInFull: the third cause has its story too, and the command that repeats it.
func TestEveryCauseIsToldInFull(t *testing.T) {
	var all []Judgement
	for _, cause := range []string{"double-grant", "foreign-release", "over-claim", "overrun"} {
		all = append(all, Judgement{Topology: "single", Lock: "x", Scenario: "of-" + cause,
			Command: "verify --scenario of-" + cause,
			Verdicts: []checker.Verdict{{Checker: "exclusion", Status: checker.Fail, Cause: cause,
				Story: []string{"the story of " + cause}}}})
	}
	var text strings.Builder
	if err := WriteVerdicts(&text, all); err != nil {
		t.Fatal(err)
	}
	for _, j := range all {
		if !strings.Contains(text.String(), j.Verdicts[0].Story[0]) ||
			!strings.Contains(text.String(), "repeat        "+j.Command) {
			t.Errorf("no story or no line of %s:\n%s", j.Scenario, text.String())
		}
	}
}

// TestSuitesAreNamedAsTheGuideSays compares docs/ci.md with the file.
func TestSuitesAreNamedAsTheGuideSays(t *testing.T) {
	guide, err := os.ReadFile("../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	all := []Judgement{{Topology: "TOPOLOGY", Lock: "LOCK", Scenario: "SCENARIO", Faults: []string{"reset@1s"},
		Verdicts: []checker.Verdict{{}}},
		{Topology: "TOPOLOGY", Lock: "LOCK", Faults: []string{"FAULTS"}, Verdicts: []checker.Verdict{{}}}}
	if err := WriteJUnit(&text, all); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"TOPOLOGY LOCK SCENARIO", "TOPOLOGY LOCK FAULTS",
		"hammerlock.TOPOLOGY.LOCK.SCENARIO", "hammerlock.TOPOLOGY.LOCK"} {
		if !strings.Contains(text.String(), `name="`+name+`"`) || !strings.Contains(string(guide), "`"+name+"`") {
			t.Errorf("not in the file and in the guide: %s\n%s", name, text.String())
		}
	}
}

func TestWhatWasNotJudgedSaysNothing(t *testing.T) {
	left := checker.Verdict{Checker: "fencing", Status: checker.NotJudged, Summary: "the lock does not claim it"}
	for want, others := range map[checker.Status][]checker.Verdict{
		checker.Pass:         {{Checker: "exclusion", Status: checker.Pass}},
		checker.Fail:         {{Checker: "exclusion", Status: checker.Fail}},
		checker.Inconclusive: nil,
	} {
		j := Judgement{Topology: "single", Lock: "lease", Verdicts: append([]checker.Verdict{left}, others...)}
		if got, text := j.Status(); got != want || text == left.Summary {
			t.Errorf("%v: %s %q", others, got, text)
		}
		var text, junit strings.Builder
		if err := errors.Join(WriteVerdicts(&text, []Judgement{j}), WriteJUnit(&junit, []Judgement{j})); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), "fencing          NOT JUDGED     the lock does not claim it") {
			t.Errorf("the text does not show it:\n%s", text.String())
		}
		if !strings.Contains(junit.String(), `<skipped message="the lock does not claim it">`) {
			t.Errorf("JUnit does not skip it:\n%s", junit.String())
		}
	}
}
