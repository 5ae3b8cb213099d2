package report

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/browser"
	"hammerlock/internal/human"
	"hammerlock/results"
)

// shadeCases are test cases that the dashboard's strip uses too. Times are in microseconds.
type shadeCases []struct {
	Name     string
	From, To time.Duration
	Cells    int
	Held     [][][2]time.Duration // by worker
	Want     [][]int
}

func readShades(t *testing.T) (all shadeCases, text string) {
	t.Helper()
	data, err := os.ReadFile("../../internal/human/testdata/shades.json")
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil || len(all) == 0 {
		t.Fatal(err)
	}
	return all, string(data)
}

// TestShades paints the cases as the totals of a run, and reads them as the page's script does.
func TestShades(t *testing.T) {
	all, _ := readShades(t)
	for _, c := range all {
		s := &ownership{Workers: len(c.Held), End: int64(c.To - c.From), Tiers: []stripTier{{Buckets: c.Cells}}}
		for i := range planes {
			s.Tiers[0].planes[i] = make([]float32, c.Cells*s.Workers)
		}
		for w, holds := range c.Held {
			for _, hold := range holds {
				s.paint(holding, int32(w), hold[0]-c.From, hold[1]-c.From)
			}
		}
		for i, b := range shares(s.Tiers[0].planes[holding]) {
			share := float64(b) / 255
			if got, want := human.Shade(share*share), slices.Concat(c.Want...)[i]; got != want {
				t.Errorf("%s, cell %d: %d, want %d", c.Name, i, got, want)
			}
		}
	}
}

// shaded makes the page's script draw the cases of single visits.
func (b tab) shaded(t *testing.T) {
	t.Helper()
	all, text := readShades(t)
	got := browser.JS[[][][]int](t, b.Tab, `(`+text+`).map(c => {
		const strip = Object.assign(Object.create(Strip.prototype), {view: [c.from || 0, c.to], width: c.cells,
			s: {workers: c.held.length, tiers: [{}]},
			rows: c.held.map(row => row.map(([from, to]) => ({from, grant: from, believed: to, held: to, end: to})))});
		const {held} = strip.shares([{from: c.from || 0, to: c.to, exact: true}]);
		return c.held.map((_, w) => Array.from(held.subarray(w * c.cells, (w + 1) * c.cells), shade));
	})`)
	for i, c := range all {
		if fmt.Sprint(got[i]) != fmt.Sprint(c.Want) {
			t.Errorf("%s: the script draws %v, want %v", c.Name, got[i], c.Want)
		}
	}
}

// TestNamesOfNumbers: the page has the names of all outcomes and reasons, as histories do.
func TestNamesOfNumbers(t *testing.T) {
	k := document([]saved{{Run: &results.Run{}, strip: &ownership{}}}, []string{"one"}, &pack{})[0].Strip
	if k.Reasons[history.Lost] != "lost" || k.Outcomes[history.OK] != "ok" ||
		!strings.HasPrefix((history.Other+1).String(), "?") ||
		!strings.HasPrefix((history.Failed+1).String(), "?") {
		t.Errorf("%q, %q, and then %s and %s", k.Outcomes, k.Reasons, history.Failed+1, history.Other+1)
	}
}
