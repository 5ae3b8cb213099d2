package harness

import (
	"errors"
	"strings"
	"testing"

	"hammerlock/internal/live"
	"hammerlock/topologies"
)

// TestWhatWasBrokenIsNotKept: servers are kept for the next run, unless a fault may have broken them. After such a
// fault, the next run starts new servers.
func TestWhatWasBrokenIsNotKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults []string
		kept   bool
	}{"unbroken": {[]string{"none"}, true}, "broken": {[]string{"kill-primary@100ms", "heal@200ms"}, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live.Again(t, func(int) string {
				kept, incidents := keeps(t, c.faults)
				if len(incidents) > 0 && c.kept {
					return strings.Join(incidents, "; ")
				}
				if kept != c.kept {
					t.Errorf("kept: %v", kept)
				}
				return ""
			})
		})
	}
}

// keeps tells whether a run has the servers of the previous run. It also returns the unplanned events of that run.
func keeps(t *testing.T, faults []string) (kept bool, incidents []string) {
	t.Helper()
	var warm Warm
	j := job(t, func(p *Plan) { p.Topologies, p.Faults = on("replica"), faults })
	var before *topologies.Topology
	for round := range 2 {
		p, err := j.prepare(t.Context(), 0, &warm)
		if err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			before = p.deployment.Topology
			_, err = p.Do(t.Context(), t.Context())
			incidents = p.incidents
		} else {
			kept = p.deployment.Topology == before
		}
		if err := errors.Join(err, p.release(t.Context(), &warm, err == nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := warm.Close(); err != nil {
		t.Error(err)
	}
	return kept, incidents
}
