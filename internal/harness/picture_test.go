package harness

import (
	"reflect"
	"testing"
	"time"

	"hammerlock/internal/deployment"
	"hammerlock/internal/measure"
	"hammerlock/locks"
)

// TestTheLastSnapshotAgreesWithTheRecord: after a run, metrics show the same numbers as the record of the run.
// Neither includes the warm-up.
func TestTheLastSnapshotAgreesWithTheRecord(t *testing.T) {
	t.Parallel()
	j := job(t, func(p *Plan) {
		p.Topologies, p.Locks = on("single"), lockNamed("lease")
		p.Warmup, p.Duration, p.Workload.Workers, p.Workload.Keys = 300*time.Millisecond, 500*time.Millisecond, 8, 1
	})
	j.Watched = true
	var last *measure.Snapshot
	j.Progress = func(e Event) {
		if e.Snapshot != nil {
			last = e.Snapshot
		}
	}
	runs, err := j.Run(t.Context(), t.Context())
	if err != nil || len(runs) != 1 || last == nil {
		t.Fatalf("got %d runs, error %v", len(runs), err)
	}
	count := func(b *measure.Buckets) (n int64) {
		for _, in := range b.In {
			n += int64(in)
		}
		return n
	}
	r := &runs[0]
	if got, want := count(&last.Acquired), r.Latency.Acquire.Count; got != want {
		t.Errorf("%d waits, in the record %d", got, want)
	}
	if got, want := count(&last.Answered), r.Latency.Response.Count; got != want {
		t.Errorf("%d response times, in the record %d", got, want)
	}
	if last.Visits != r.Visits || last.Waiting != 0 || last.Fairness.Jain != r.Fairness.Jain ||
		!reflect.DeepEqual(last.Kinds, r.Errors) {
		t.Errorf("%+v %d waiting, Jain %v, errors %v; in the record %+v %v %v", last.Visits, last.Waiting,
			last.Fairness.Jain, last.Kinds, r.Visits, r.Fairness.Jain, r.Errors)
	}
}

// TestCostsOfNoCommandAreUnknown: a visit to a lock on servers takes a command, so that a count of 0 has seen none.
func TestCostsOfNoCommandAreUnknown(t *testing.T) {
	none := deployment.Cost{Known: true, CPU: time.Millisecond}
	if c := share(none, 3, 0, locks.OneSite); c.Commands != nil || c.ServerCPU != nil || c.RoundTrips != nil {
		t.Errorf("got %+v", c)
	}
	if c := share(none, 4, 0, locks.NoSite); c.Commands == nil || *c.Commands != 0 || *c.ServerCPU != 250_000 {
		t.Errorf("without servers: got %+v", c)
	}
}
