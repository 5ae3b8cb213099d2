package harness

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/measure"
	"hammerlock/results"
)

// TestThePictureGoesOnWithoutADeadProcess kills a process while it acquires a lock. The dashboard must show the death
// during the run. It must also show the later operations of the other processes.
func TestThePictureGoesOnWithoutADeadProcess(t *testing.T) {
	t.Parallel()
	j := job(t, func(p *Plan) {
		p.Verify, p.Processes, p.Locks, p.Faults = true, 2, lockNamed("fence-after"), []string{"kill-process@between"}
		p.Workload.TTL, p.Workload.Retry, p.Duration = 100*time.Millisecond, time.Millisecond, time.Minute
	})
	j.Watched = true
	stop, end := context.WithCancel(t.Context())
	defer end()
	var seen *measure.Snapshot
	j.Progress = func(e Event) {
		if e.Snapshot == nil || seen != nil {
			return
		}
		for _, event := range e.Snapshot.Events {
			if event.Kind == measure.CrashEvent && e.Snapshot.Safety.SafeUpTo > event.At+500*time.Millisecond {
				seen = e.Snapshot
				end()
			}
		}
	}
	runs, err := j.Run(t.Context(), stop)
	if err != nil {
		t.Fatal(err)
	}
	if seen == nil {
		t.Fatal("until the end nothing was seen of what came after the kill")
	}
	h, err := history.Open(filepath.Join(j.Plan.Out, runs[0].Name, results.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(h.Ops, func(op history.Op) bool {
		return op.Kind == history.Acquire && op.Return == history.Forever
	}) {
		t.Error("the acquire that was never answered is not in the history")
	}
}
