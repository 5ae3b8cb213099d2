package main

import (
	"maps"
	"slices"
	"testing"
)

// TestAloneBaselines compares the cost of a visit with its known value, for every lock that this server can run.
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
		if got[lock] != want[lock] { // measure returns the known cost if the new one is near
			t.Errorf("%s: a visit costs %+v, known is %+v; if that is meant: make baselines", lock,
				got[lock], want[lock])
		}
	}
}
