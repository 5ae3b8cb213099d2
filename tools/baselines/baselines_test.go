package main

import (
	"maps"
	"slices"
	"testing"
)

// TestAloneBaselines compares what a visit costs, with every lock that this server serves, with what it is known to
// cost.
func TestAloneBaselines(t *testing.T) {
	t.Chdir("../..")
	want, err := read()
	if err != nil {
		t.Fatal(err)
	}
	got, err := measure(t.Context(), want, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) == 0 {
		t.Error("nothing was measured")
	}
	for _, lock := range slices.Sorted(maps.Keys(got)) {
		if got[lock] != want[lock] { // what is near is what is known
			t.Errorf("%s: a visit costs %+v, known is %+v; if that is meant: make baselines", lock,
				got[lock], want[lock])
		}
	}
}
