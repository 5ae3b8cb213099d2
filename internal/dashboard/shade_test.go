package dashboard

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/measure"
)

// TestShades draws the same cases as the test of the report's strip: from a history to the letters of a lane.
func TestShades(t *testing.T) {
	text, err := os.ReadFile("../human/testdata/shades.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name     string
		From, To time.Duration // in microseconds, as all times
		Cells    int
		Held     [][][2]time.Duration // indexed by worker
		Want     [][]int
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) == 0 {
		t.Fatal(err)
	}
	for _, c := range cases {
		h := &history.History{Header: history.Header{Workers: len(c.Held), Keys: 1}}
		for w, holds := range c.Held {
			for i, hold := range holds {
				id := history.ID(w+1)<<40 | history.ID(2*i+1)
				op := history.Op{ID: id, Hold: id, Kind: history.Acquire, Worker: int32(w), Outcome: history.OK,
					Call: hold[0] * time.Microsecond, Return: hold[0] * time.Microsecond}
				release := op
				release.ID, release.Kind, release.Call, release.Return = id+1, history.Release,
					hold[1]*time.Microsecond, hold[1]*time.Microsecond
				h.Ops = append(h.Ops, op, release)
			}
		}
		slices.SortStableFunc(h.Ops, func(a, b history.Op) int { return int(a.Return - b.Return) })
		lane := measure.NewReplay(h, nil).At(time.Hour).Lane
		screen := simulation(t, c.Cells, 1)
		for w, want := range c.Want {
			screen.Clear()
			paintStrip(canvas{screen, look{}, 0, 0, c.Cells, 1},
				lane(w, c.From*time.Microsecond, c.To*time.Microsecond, c.Cells))
			var got []int
			for x := range want {
				r, _, _, _ := screen.GetContent(x, 0)
				got = append(got, slices.Index(bars, r))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, w%02d: %v, want %v", c.Name, w, got, want)
			}
		}
		screen.Fini()
	}
}
