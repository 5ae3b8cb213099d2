package crew

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/workload"
)

// TestARateThatChangesIsOneForAllProcesses lets an open loop of three processes run faster during the run. Together
// they make all visits of one schedule, at the times that its tempo gives.
func TestARateThatChangesIsOneForAllProcesses(t *testing.T) {
	t.Parallel()
	const rate, speed, at, end = 100, 5, 500 * time.Millisecond, 1200 * time.Millisecond
	var from time.Duration
	var due []time.Duration
	live.Again(t, func(int) string {
		w := begun(t, func(o *Orders) {
			o.Lock, o.Steered = named(t, "none"), true
			o.Shape.Rate, o.Shape.Arrivals, o.Shape.Hold = rate, workload.Uniform, 0
			o.Shape.End, o.To = end, end
		})
		var err error
		if from, err = w.Tempo.Change(at, speed); err != nil {
			t.Fatal(err)
		}
		if now := w.Clock.Now(); now > at {
			return fmt.Sprintf("the change from %v on was told at %v", from, now)
		}
		w.until("the end", func() bool { return w.drain() > end+w.Slack })
		report := w.finish()
		due = report.Unfinished
		for i := range w.Ops {
			if op := &w.Ops[i]; op.Kind == history.End || op.Kind == history.Skip {
				due = append(due, op.Due)
			}
		}
		if n := int64(len(due) - len(report.Unfinished)); n != report.Begun+report.Skipped {
			t.Errorf("%d visits in the history, %d begun and %d skipped in the report", n, report.Begun, report.Skipped)
		}
		return ""
	})
	slices.Sort(due)
	var want []time.Duration
	for n := time.Duration(0); ; n++ {
		d := n * time.Second / rate
		if d > from {
			d = from + (d-from)/speed
		}
		if d >= end {
			break
		}
		want = append(want, d)
	}
	if len(due) != len(want) {
		t.Fatalf("%d visits were due, want %d", len(due), len(want))
	}
	for i, d := range due {
		if off := d - want[i]; off < -time.Microsecond || off > time.Microsecond {
			t.Errorf("visit %d was due at %v, want %v", i, d, want[i])
		}
	}
}
