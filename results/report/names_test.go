package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"hammerlock/results"
)

// TestRunsAreNamedByWhatDiffers and nothing else: what all have in common is said once.
func TestRunsAreNamedByWhatDiffers(t *testing.T) {
	run := func(topology, lock, scenario string, workers int) results.Run {
		return results.Run{Topology: topology, Lock: lock, Scenario: scenario, Config: results.Config{Workers: workers, Keys: 1}}
	}
	for name, c := range map[string]struct {
		runs   []results.Run
		names  []string
		common string
	}{
		"one":        {[]results.Run{run("single", "lease", "crash", 8)}, []string{"single · lease · crash"}, "single · lease · crash"},
		"topologies": {[]results.Run{run("single", "lease", "", 8), run("redlock", "redlock", "", 8)}, []string{"single · lease", "redlock · redlock"}, ""},
		"scenarios":  {[]results.Run{run("single", "lease", "crash", 8), run("single", "lease", "two-leases", 16)}, []string{"crash", "two-leases"}, "single · lease"},
		"workers":    {[]results.Run{run("single", "lease", "", 8), run("single", "lease", "", 64)}, []string{"8 workers", "64 workers"}, "single · lease"},
		"rounds": {[]results.Run{run("single", "lease", "", 8), run("single", "redsync", "", 8), run("single", "lease", "", 8)},
			[]string{"lease #1", "redsync", "lease #2"}, "single"},
		"the same": {[]results.Run{run("single", "lease", "", 8), run("single", "lease", "", 8)}, []string{"single · lease #1", "single · lease #2"}, "single · lease"},
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

// TestManyRunsAreFolded below a table that leads to each of them.
func TestManyRunsAreFolded(t *testing.T) {
	for n, folds := range map[int]int{1: 0, unfolded: 0, unfolded + 1: unfolded + 1} {
		var page bytes.Buffer
		if err := writePage(&page, savedOf(make([]results.Run, n))); err != nil {
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
