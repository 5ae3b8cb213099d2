package kept

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hammerlock/topologies"
)

// TestMatricesAreKeptTogether puts printed matrices together, and such that must not be.
func TestMatricesAreKeptTogether(t *testing.T) {
	printed := func(seed, red int, fault, found string) []byte {
		return fmt.Appendf(nil, `{"matrix":{"seed":%d,"red":%d},"cells":[{"lock":"lease","topology":"single","fault":"none","counter":"redis",
			"processes":1,"expected":{"want":"must-pass"},"found":"PASS","holds":100},{"lock":"lease","topology":"single","fault":%q,
			"counter":"redis","processes":2,"expected":{"want":"must-fail"},"found":%q,"holds":5,"violations":2,"detected_ns":1000000}]}`,
			seed, red, fault, found)
	}
	var kept Matrix
	if err := errors.Join(kept.Put(printed(1, 0, "flush", "service-loss")), kept.Put(printed(2, 0, "flush", "overrun"))); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"a red one": printed(3, 1, "flush", "overrun"), "the same seed": printed(2, 0, "flush", "overrun"),
		"other cells": printed(3, 0, "evict", "overrun"), "no matrix": []byte("FAIL")} {
		other := Matrix{Seeds: slices.Clone(kept.Seeds), Cells: slices.Clone(kept.Cells)}
		if other.Put(text) == nil {
			t.Errorf("%s was taken", name)
		}
	}
	for _, want := range []string{
		"| `lease` | single | no fault | must-pass | PASS | 200 | 0 | 1.5e-02 |\n",
		"| `lease` | single | flush, 2 processes | must-fail | overrun or service-loss | 10 | 4 | - |\n",
		"2 cells with each of the seeds 1, 2, all as expected; 210 holds",
	} {
		if !strings.Contains(kept.full(), want) {
			t.Errorf("no %q in\n%s", want, kept.full())
		}
	}
	other := Matrix{Seeds: []uint64{1, 2}, Cells: []cell{{Lock: "none", Want: "must-fail", Found: []string{"unguarded", "unguarded"}}}}
	both := Matrix{Seeds: []uint64{2}, Cells: []cell{{Lock: "lease"}}}
	if both.takeOver(&other) == nil {
		t.Error("cells of other seeds were taken over")
	}
	both = Matrix{Seeds: []uint64{1, 2}, Cells: []cell{{Lock: "lease", Holds: 7}}}
	other.Cells = append(other.Cells, cell{Lock: "lease"}, cell{Lock: "a lock that is no more"})
	if err := both.takeOver(&other); err != nil || len(both.Cells) != 2 || both.Cells[0].Holds+both.Cells[1].Holds != 7 || !both.measured("none") {
		t.Errorf("taken over: %v, %+v", err, both.Cells)
	}
	if want := "| `lease` | pass ×1<br>fails: overrun or service-loss |" + strings.Repeat("  |", len(topologies.All)-1) + "\n"; !strings.Contains(kept.short(), want) {
		t.Errorf("no %q in\n%s", want, kept.short())
	}
	text, err := kept.text()
	if err != nil {
		t.Fatal(err)
	}
	var again Matrix
	if err := json.Unmarshal(text, &again); err != nil || again.full() != kept.full() {
		t.Errorf("read back: %v\n%s", err, again.full())
	}
}
