package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hammerlock/checker"
	"hammerlock/results"
)

// TestTheDocumentsAreThoseOfTheRuns: the documents match the saved runs, and every run belongs to a listed release.
func TestTheDocumentsAreThoseOfTheRuns(t *testing.T) {
	t.Chdir("../..")
	all, err := read[[]library](listFile)
	if err != nil {
		t.Fatal(err)
	}
	files, err := documents(all)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range files {
		if strings.Contains(want, "<anonymous>") {
			t.Errorf("%s: <anonymous> in a trace would be a tag that is never closed, with which make site fails", file)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is not what make readme writes (%v)", file, err)
		}
	}
	if strings.Contains(files["docs/record/README.md"], notRead) {
		t.Error("docs/record/README.md: a failure of a newest release was not read in its code: " +
			"say in libraries.json what is behind it")
	}
	listed := map[string]bool{}
	for i := range all {
		if len(all[i].Promises) == 0 || len(all[i].Topologies) == 0 {
			t.Errorf("%s promises nothing, or runs nowhere", all[i].Name)
		}
		for k := range all[i].Releases {
			listed[job{&all[i], &all[i].Releases[k]}.file()] = true
		}
	}
	runs, err := filepath.Glob(filepath.Join(runsDir, "*.json"))
	if err != nil || len(runs) == 0 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	for _, file := range runs {
		if !listed[file] {
			t.Errorf("%s is of no release in %s", file, listFile)
		}
	}
}

// TestATrackRecordNamesOnlyWhatWasCaught: a report that claims a failure without a run is refused.
func TestATrackRecordNamesOnlyWhatWasCaught(t *testing.T) {
	l := &library{Name: "l", Releases: []release{{Version: "1"}}}
	said := &results.Released{On: []results.ReleasedOn{{Topology: "single", Scenarios: []results.Tried{
		{Scenario: "crash", Status: checker.Pass},
		{Scenario: "late-release", Status: checker.Fail, Checker: "exclusion", Cause: "foreign-release", After: 2e9},
	}}}}
	pages := []page{{l, []judged{{job{l, &l.Releases[0]}, said}}}}
	text, err := trackRecord(pages, []report{{Library: "l", Version: "1", Topology: "single", Scenario: "late-release"},
		{Library: "l", Version: "1", Why: "two processes"}})
	if err != nil || !strings.Contains(text, "`late-release`: exclusion foreign-release | 2.00 s") ||
		!strings.Contains(text, "1 of 2 were caught") {
		t.Errorf("got %v: %s", err, text)
	}
	for _, r := range []report{
		{Library: "l", Version: "1", Topology: "single", Scenario: "crash"},
		{Library: "l", Version: "2", Topology: "single", Scenario: "late-release"},
	} {
		if _, err := trackRecord(pages, []report{r}); err == nil {
			t.Errorf("%+v counts as caught", r)
		}
	}
}

// TestAFailureThatWasNotReadIsNamed: the table lists the failures of the newest judged release whose cause is
// unknown. A cause with the verdict "ours" does not count as known, because that bug is fixed.
func TestAFailureThatWasNotReadIsNamed(t *testing.T) {
	failed := func(scenarios ...string) *results.Released {
		on := results.ReleasedOn{Scenarios: []results.Tried{{Scenario: "wear", Status: checker.Pass}}}
		for _, s := range scenarios {
			on.Scenarios = append(on.Scenarios, results.Tried{Scenario: s, Status: checker.Fail})
		}
		return &results.Released{On: []results.ReleasedOn{on}}
	}
	l := &library{Name: "l", Releases: []release{{Version: "1"}, {Version: "2", Read: []reading{
		{Scenarios: []string{"crash"}, Verdict: "confirmed"}, {Scenarios: []string{"cancelled"}, Verdict: ours},
	}}, {Version: "3"}}}
	text := readings([]page{{l,
		[]judged{{job{l, &l.Releases[2]}, nil}, {job{l, &l.Releases[1]}, failed("crash", "cancelled", "comeback")},
			{job{l, &l.Releases[0]}, failed("sleepers")}}}})
	for scenario, want := range map[string]bool{"crash": false, "cancelled": true, "comeback": true, "wear": false,
		"sleepers": false} {
		if got := strings.Contains(text, "`"+scenario+"` | "+notRead); got != want {
			t.Errorf("%s is not read: got %t, want %t\n%s", scenario, got, want, text)
		}
	}
}

// TestACellSaysTheWorst: a failure on one topology decides the cell.
func TestACellSaysTheWorst(t *testing.T) {
	on := func(s ...checker.Status) (all []results.ReleasedOn) {
		for _, s := range s {
			all = append(all, results.ReleasedOn{Claims: []results.Claim{{Claim: "excludes", Status: s}}})
		}
		return all
	}
	for want, all := range map[string][]results.ReleasedOn{
		"holds": on(checker.Pass, checker.Pass), "**no**": on(checker.Pass, checker.Fail),
		"holds, undecided": on(checker.Pass, checker.Inconclusive), "not asked": nil,
	} {
		if got := cell(all, "excludes"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
