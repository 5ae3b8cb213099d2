package harness

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/live"
	"hammerlock/results"
	"hammerlock/topologies"
)

// TestARightRedlockWhoseSiteComesBackEmpty: one of five sites is shut down and restarted without its keys, while
// workers compete for the lock. Replies are lost, so a grant may be on only three sites, and a second grant is
// possible. The lock must not be blamed. The run lasts until the site was restarted often enough.
func TestARightRedlockWhoseSiteComesBackEmpty(t *testing.T) {
	t.Parallel()
	live.Again(t, func(int) string {
		j := job(t, func(p *Plan) {
			p.Topologies, p.Locks, p.Verify, p.Warmup = on("redlock"), lockNamed("redlock"), true, 0
			p.Duration = 40 * time.Second
			p.Faults = []string{"drop-reply:200@300ms", "drop-reply:200@1200ms", "drop-reply:200@2100ms"}
			p.Workload.Workers, p.Workload.Hold, p.Workload.TTL = 8, 100*time.Millisecond, 600*time.Millisecond
		})
		p, err := j.Prepare(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}()
		var visits atomic.Int64
		j.Progress = func(e Event) { visits.Store(max(visits.Load(), e.Live.Done)) }
		var r *results.Run
		over := make(chan struct{})
		stop, enough := context.WithCancel(t.Context())
		go func() {
			defer close(over)
			r, err = p.Do(t.Context(), stop)
		}()
		times := restarts(t, p.deployment.Topology.Nodes[2], &visits, over)
		enough()
		if <-over; err != nil {
			t.Fatal(err)
		}
		if seen := strings.Count(strings.Join(p.incidents, "; "), "ended unexpectedly"); seen < max(times, 1) {
			return fmt.Sprintf("%d of %d ends of a site were seen", seen, times)
		}
		for _, v := range r.Verdicts {
			if v.Status == checker.Fail {
				t.Errorf("%s: %s\n%s", v.Checker, v.Summary, strings.Join(v.Story, "\n"))
			}
		}
		return ""
	})
}

const mostRestarts = 4

// The function restarts shuts a server down and starts it again without its keys, up to mostRestarts times. Between
// these steps it waits for visits, so that the suite sees each state. It returns the number of restarts.
func restarts(t *testing.T, n *topologies.Node, visits *atomic.Int64, over <-chan struct{}) (times int) {
	t.Helper()
	more := func(by int64) bool {
		from, ended := visits.Load(), false
		live.Wait(t, "more visits, or the end of the run", func() bool {
			select {
			case <-over:
				ended = true
			default:
			}
			return ended || visits.Load() >= from+by
		})
		return !ended
	}
	for ; times < mostRestarts && more(1); times++ {
		_ = n.Do(t.Context(), "SHUTDOWN", "NOSAVE") // the server answers by closing the connection
		live.Wait(t, "the end of a site", func() bool { return n.State() == topologies.Down })
		more(2)
		if err := n.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return times
}
