package crew

import (
	"slices"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/workload"
)

// TestARateThatChangesIsOneForAllProcesses lets an open loop of three processes run faster while it goes on. Together
// they make the visits of the one schedule, at the times that its tempo gives, and account for every one.
func TestARateThatChangesIsOneForAllProcesses(t *testing.T) {
	t.Parallel()
	const rate, speed, at, end = 100, 5, 500 * time.Millisecond, 1200 * time.Millisecond
	c, finish := begun(t, func(o *Orders) {
		o.Lock, o.Steered = named(t, "none"), true
		o.Shape.Rate, o.Shape.Arrivals, o.Shape.Hold, o.Shape.Wait = rate, workload.Uniform, 0, time.Minute
		o.Shape.End, o.To = end, end
	})
	lanes, slack := c.Lanes, c.Slack
	m := history.NewMerge(c.Clock, lanes)
	m.Slack = slack
	var due []time.Duration
	emit := func(op *history.Op) {
		if op.Kind == history.End || op.Kind == history.Skip {
			due = append(due, op.Due)
		}
	}
	from, err := c.Tempo.Change(at, speed) // long before it comes to pass
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return m.Drain(emit) > end+slack })
	report := finish()
	m.Flush(emit)
	if int64(len(due)) != report.Begun+report.Skipped {
		t.Errorf("%d visits in the history, %d begun and %d skipped in the report", len(due), report.Begun, report.Skipped)
	}
	due = append(due, report.Unfinished...)
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
