package harness

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/results"
)

// TestStreamsAgreeWithOperations cuts connections while commands are in flight. The replication streams of the
// servers show which of these commands took effect. They agree with all replies that workers did get.
func TestStreamsAgreeWithOperations(t *testing.T) {
	t.Parallel()
	for topology, lock := range map[string]string{"single": "lease", "redlock": "redlock"} {
		t.Run(topology, func(t *testing.T) {
			t.Parallel()
			j := job(t, func(p *Plan) {
				p.Verify, p.Tap, p.Topologies, p.Locks = true, true, on(topology), lockNamed(lock)
				p.Warmup, p.Duration, p.Workload.TTL = 0, 3*time.Second, 2*time.Second
				p.Faults = []string{"reset@1s", "reset@1200ms", "reset@1400ms"}
			})
			live.Again(t, func(int) (undecided string) {
				runs, err := j.Run(t.Context(), t.Context())
				if err != nil || len(runs) != 1 {
					t.Fatalf("got %d runs, error %v", len(runs), err)
				}
				s := runs[0].Stream
				if s == nil || len(s.Against) > 0 || len(s.Breaks) > 0 {
					t.Fatalf("%+v", s)
				}
				if s.Effects == 0 || s.Compared == 0 {
					return fmt.Sprintf("too little was answered: %+v", s)
				}
				if g := s.Grants; topology == "single" && g.Executed+g.Without != g.Unknown {
					t.Errorf("not settled: %+v", g)
				}
				h, err := history.Open(filepath.Join(j.Plan.Out, runs[0].Name, results.HistoryFile))
				if err != nil || h.Measured == nil || h.Measured.Stream == nil ||
					h.Measured.Stream.Compared != s.Compared {
					t.Errorf("the history has %+v, error %v", h.Measured, err)
				}
				return ""
			})
		})
	}
}
