package model

import (
	"slices"
	"testing"

	"hammerlock/history"
)

// TestOneListOfBrokenClaims: the claim that a deviation breaks is the one that names it as a cause.
func TestOneListOfBrokenClaims(t *testing.T) {
	for _, d := range Deviations {
		n := slices.IndexFunc(history.AllClaims, func(c history.Claim) bool { return c.Name == d.Claim })
		if n < 0 || !slices.Contains(history.AllClaims[n].Causes, d.Name) {
			t.Errorf("%s breaks %s, which does not name it", d.Name, d.Claim)
		}
	}
}
