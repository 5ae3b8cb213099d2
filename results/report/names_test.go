package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/results"
)

// TestRunsAreNamedByWhatDiffers and nothing else; what all have in common is written once.
func TestRunsAreNamedByWhatDiffers(t *testing.T) {
	run := func(topology, lock, scenario string, workers int) results.Run {
		return results.Run{Topology: topology, Lock: lock, Scenario: scenario,
			Config: results.Config{Workers: workers, Keys: 1}}
	}
	for name, c := range map[string]struct {
		runs   []results.Run
		names  []string
		common string
	}{
		"one": {[]results.Run{run("single", "lease", "crash", 8)}, []string{"single · lease · crash"},
			"single · lease · crash"},
		"topologies": {[]results.Run{run("single", "lease", "", 8), run("redlock", "redlock", "", 8)},
			[]string{"single · lease", "redlock · redlock"}, ""},
		"scenarios": {[]results.Run{run("single", "lease", "crash", 8), run("single", "lease", "two-leases", 16)},
			[]string{"crash", "two-leases"}, "single · lease"},
		"workers": {[]results.Run{run("single", "lease", "", 8), run("single", "lease", "", 64)},
			[]string{"8 workers", "64 workers"}, "single · lease"},
		"rounds": {[]results.Run{run("single", "lease", "", 8), run("single", "redsync", "", 8),
			run("single", "lease", "", 8)},
			[]string{"lease #1", "redsync", "lease #2"}, "single"},
		"the same": {[]results.Run{run("single", "lease", "", 8), run("single", "lease", "", 8)},
			[]string{"single · lease #1", "single · lease #2"}, "single · lease"},
	} {
		names, common := titles(savedOf(c.runs))
		if !slices.Equal(names, c.names) || common != c.common {
			t.Errorf("%s: got %q, %q; want %q, %q", name, names, common, c.names, c.common)
		}
	}
}

func savedOf(runs []results.Run) (all []saved) {
	for i := range runs {
		all = append(all, saved{Run: &runs[i]})
	}
	return all
}

// TestManyRunsAreFolded below a table with a link to each of them.
func TestManyRunsAreFolded(t *testing.T) {
	for n, folds := range map[int]int{1: 0, unfolded: 0, unfolded + 1: unfolded + 1} {
		var page bytes.Buffer
		if err := writePage(&page, savedOf(make([]results.Run, n)), nil); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(page.String(), `<details class="fold">`); got != folds {
			t.Errorf("%d of %d runs are folded, want %d", got, n, folds)
		}
		if links := strings.Count(page.String(), `<td><a href="#run`); n > 1 && links != n {
			t.Errorf("the table leads to %d of %d runs", links, n)
		}
	}
}

// TestWhatASealSays: a run that passed on a busy machine is no plain pass.
func TestWhatASealSays(t *testing.T) {
	pass := []checker.Verdict{{Checker: "exclusion", Status: checker.Pass}}
	for state, want := range map[results.GeneratorState]string{results.GeneratorOK: "pass",
		results.Saturated: "unsure", results.Disturbed: "unsure"} {
		run := saved{Run: &results.Run{Verdicts: pass, Generator: results.Generator{State: state}}}
		if got := banner([]saved{run}).State; got.Class != want || got.Word != "PASS" {
			t.Errorf("generator %v: %v, want %s", state, got, want)
		}
	}
}

// TestAPageOfOneRunSaysOnceWhatWasTried, and nothing against its verdict.
func TestAPageOfOneRunSaysOnceWhatWasTried(t *testing.T) {
	run := results.Run{Recorded: true, Config: results.Config{Workers: 2}, Verdicts: []checker.Verdict{
		{Checker: "exclusion", Status: checker.Fail, Summary: "two workers held the lock at once"},
		{Checker: "activity", Status: checker.Pass, Extent: &checker.Extent{Workers: 2, Keys: 1}}}}
	one := savedOf([]results.Run{run})
	one[0].strip = &ownership{}
	var page bytes.Buffer
	if err := writePage(&page, one, nil); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(page.String(), "Tried: "); n != 1 {
		t.Errorf("it says %d times what was tried", n)
	}
	if text := overlapText(&ownership{}, run.Verdicts); strings.Contains(text, "no two workers ever held") {
		t.Error(text)
	}
}

// TestWhenFaultsAreInForce: a fault in the page has its injection, its effect and its healing as separate times.
// Role changes are marked, other unplanned events are not.
func TestWhenFaultsAreInForce(t *testing.T) {
	run := saved{Run: &results.Run{}, faults: []string{"kill-primary"}, notes: map[int64]string{}, others: []event{
		{2 * time.Second, 3 * time.Second, "n3 became primary", true}, {0, time.Second, "a process was paused", false},
	}}
	run.Windows = []results.FaultWindow{{From: 1, Injected: 2, Healing: 3, To: 4},
		{From: 5, Injected: 6, Healing: history.Forever, To: history.Forever}}
	d := document([]saved{run}, []string{"one"}, &pack{})[0]
	if f := d.Faults; len(f) != 2 || f[0] != (faultDocument{From: 1, In: 2, Out: 3, To: 4, Name: "kill-primary"}) ||
		f[1].Out != -1 || f[1].To != -1 {
		t.Errorf("%+v", d.Faults)
	}
	if len(d.Roles) != 1 || d.Roles[0].Name != "n3 became primary" {
		t.Errorf("%+v", d.Roles)
	}
}
