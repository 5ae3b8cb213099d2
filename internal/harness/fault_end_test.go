package harness

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/results"
)

// TestFaultsAtTheEnd: faults are in force when a run ends or is interrupted. The run is kept, with each of the faults.
func TestFaultsAtTheEnd(t *testing.T) {
	for fault, interrupted := range map[string]bool{
		"slow-server@480ms": false, "slow-server@100ms": true, "restart-late@450ms": false, "stall-worker@100ms": true,
		"failover@490ms": false,
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			j := job(t, func(p *Plan) {
				p.Verify, p.Warmup, p.Faults, p.Workload.TTL = true, 0, []string{fault}, 500*time.Millisecond
				if interrupted {
					p.Duration, p.Workload.TTL = time.Minute, 5*time.Second
				}
				if strings.HasPrefix(fault, "failover") {
					p.Topologies = on("replica")
				}
			})
			stop, end := context.WithCancelCause(t.Context())
			defer end(nil)
			if interrupted {
				j.Watched = true
				j.Progress = func(e Event) {
					if e.Snapshot != nil && len(e.Snapshot.Active) > 0 {
						end(errors.New("interrupted"))
					}
				}
			}
			runs, err := j.Run(t.Context(), stop)
			if err != nil || len(runs) != 1 || (runs[0].Partial != "") != interrupted {
				t.Fatalf("got %d runs, error %v", len(runs), err)
			}
			if left, _ := filepath.Glob(filepath.Join(j.Plan.Out, "*.partial")); len(left) > 0 {
				t.Errorf("%v was left", left)
			}
			h, err := history.Open(filepath.Join(j.Plan.Out, runs[0].Name, results.HistoryFile))
			if err != nil {
				t.Fatal(err)
			}
			kinds := map[history.Kind]int{}
			for i := range h.Ops {
				kinds[h.Ops[i].Kind]++
			}
			// a check at 480 ms may be too late
			if kinds[history.Fault] != kinds[history.Heal] || kinds[history.Fault] > 1 || interrupted &&
				kinds[history.Fault] == 0 {
				t.Errorf("%d faults and %d heals in the history", kinds[history.Fault], kinds[history.Heal])
			}
		})
	}
}

// TestWhatIsLeftIsNamed deletes the history file during a run, so that the run fails at its end. The error names the
// directory in which the recorded data is left.
func TestWhatIsLeftIsNamed(t *testing.T) {
	j := job(t, func(p *Plan) { p.Verify = true })
	j.Progress = func(e Event) {
		if e.Live.At == 0 {
			return
		}
		left, _ := filepath.Glob(filepath.Join(j.Plan.Out, "*.partial"))
		for _, dir := range left {
			_ = os.Remove(filepath.Join(dir, results.HistoryFile)) // the error of the run tells it
		}
	}
	p, err := j.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := p.Do(t.Context(), t.Context()); err == nil || !strings.Contains(err.Error(), ".partial") {
		t.Errorf("got error %v", err)
	}
}

// TestARunTooShortForAuto: the error comes before the run starts.
func TestARunTooShortForAuto(t *testing.T) {
	for duration, short := range map[time.Duration]bool{6 * time.Second: true, 60 * time.Second: false} {
		j := job(t, func(p *Plan) {
			p.Verify, p.Faults, p.Duration, p.Workload.TTL = true, []string{"auto"}, duration, 3*time.Second
		})
		if said := strings.Contains(strings.Join(j.LeftOut, "\n"), "the run is too short"); said != short {
			t.Errorf("%s: %q", duration, j.LeftOut)
		}
	}
}
