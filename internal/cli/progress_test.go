package cli

import (
	"strings"
	"testing"
	"time"

	"hammerlock/internal/harness"
	"hammerlock/internal/measure"
)

// TestProgressSaysWhatIsKnown: no percentile of too few waits, and none before the first.
func TestProgressSaysWhatIsKnown(t *testing.T) {
	for want, q := range map[string]measure.Quantiles{
		"acquire p50 - p99 -  0 waiting":             {},
		"acquire p50 1.00 ms p99 -  0 waiting":       {Count: 13, P50: time.Millisecond, P99: 20 * time.Millisecond},
		"acquire p50 1.00 ms p99 20.0 ms  0 waiting": {Count: 600, P50: time.Millisecond, P99: 20 * time.Millisecond},
	} {
		var out strings.Builder
		p := progress{w: &out}
		p.tell(harness.Event{Phase: harness.Running, Live: measure.Live{At: 3 * time.Second, Acquire: q}})
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	}
}
