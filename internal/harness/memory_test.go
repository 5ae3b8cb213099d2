package harness

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestWhatDoesNotFitIsSaidBefore: a run whose history needs more than the free memory and disk space causes a warning
// before it starts. Smaller runs do not.
func TestWhatDoesNotFitIsSaidBefore(t *testing.T) {
	p := Default()
	p.Verify, p.Warmup, p.Duration, p.Workload.Rate = true, 0, time.Hour, 1000
	if got := p.tooLarge(300e6, 900e6); len(got) != 1 ||
		!strings.Contains(got[0], "takes about 9000 MB, and 900 MB are free") ||
		!strings.Contains(got[0], "at most 6m0s") {
		t.Errorf("got %q", got)
	}
	bench := p
	bench.Verify = false
	if got := slices.Concat(p.tooLarge(9000e6, 0), p.tooLarge(1, 9000e6), p.tooLarge(0, 0),
		bench.tooLarge(1, 1)); len(got) > 0 {
		t.Errorf("got %q, want nothing", got)
	}
}
