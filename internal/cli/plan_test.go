package cli

import (
	"testing"

	"hammerlock/internal/harness"
)

// TestFoldersOfTheSameSecond: commands with the same seed that begin at the same time write into different folders.
func TestFoldersOfTheSameSecond(t *testing.T) {
	if a, b := folder(harness.Plan{}, "explore-lease"), folder(harness.Plan{}, "explore-lease"); a == b {
		t.Errorf("both in %s", a)
	}
}
