package cli

import (
	"strings"
	"testing"
	"time"

	"hammerlock/internal/harness"
	"hammerlock/internal/measure"
)

// TestProgressBeginsSoon: the first line comes after half a second. Visits of the warm-up are counted separately.
func TestProgressBeginsSoon(t *testing.T) {
	var out strings.Builder
	p := progress{w: &out}
	x := harness.Combination{Plan: harness.Plan{Warmup: time.Second}}
	// this event prints nothing
	p.tell(harness.Event{Combination: x, Stage: harness.Running, Controls: &measure.Controls{}})
	for at := 100 * time.Millisecond; at < 5*time.Second; at += 100 * time.Millisecond {
		p.tell(harness.Event{
			Combination: x, Stage: harness.Running, Live: measure.Live{At: at, Warm: int64(min(at, time.Second) / 1e7),
				Done: max(int64(at-time.Second)/1e7, 0)},
		})
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("got %q", lines)
	}
	for i, want := range []string{"500ms  warm-up: 50 visits (100/s)  acquire", "2.5s  150 visits (100/s)",
		"4.5s  350 visits (100/s)"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
}

// TestProgressSaysWhatIsKnown: there is no percentile of too few waits, and none before the first wait.
func TestProgressSaysWhatIsKnown(t *testing.T) {
	for want, q := range map[string]measure.Quantiles{
		"acquire p50 - p99 -  0 waiting":             {},
		"acquire p50 1.00 ms p99 -  0 waiting":       {Count: 13, P50: time.Millisecond, P99: 20 * time.Millisecond},
		"acquire p50 1.00 ms p99 20.0 ms  0 waiting": {Count: 600, P50: time.Millisecond, P99: 20 * time.Millisecond},
	} {
		var out strings.Builder
		p := progress{w: &out}
		p.tell(harness.Event{Stage: harness.Running, Live: measure.Live{At: 3 * time.Second, Acquire: q}})
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	}
}
