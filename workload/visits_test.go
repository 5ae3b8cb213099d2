package workload

import (
	"testing"
	"testing/synctest"
	"time"

	"hammerlock/history"
)

// TestAWorkerMakesAsManyVisitsAsAreAsked and no more, even if there is time left.
func TestAWorkerMakesAsManyVisitsAsAreAsked(t *testing.T) {
	due, ops, _ := run(t, Shape{Workers: 3, Keys: 1, End: history.Forever, Visits: 2},
		catalogued(t, "local"), t.Context())
	if got := count(ops, history.End, history.OK); got != 6 || due.Begun != 6 {
		t.Errorf("got %d visits of %d begun, want 6", got, due.Begun)
	}
}

// TestReentriesBeforeAndAfterALongHold: if a hold is longer than the lease, re-entries come at its beginning and at
// its end. The early ones show whether the end of an inner hold ends the outer hold. The late ones show what became
// of the outer hold's lease.
func TestReentriesBeforeAndAfterALongHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for hold, want := range map[time.Duration]bool{2 * time.Millisecond: false, 20 * time.Millisecond: true} {
			plan := Shape{
				Workers: 1, Keys: 1, End: history.Forever, Visits: 16, Reenter: 1,
				TTL: 10 * time.Millisecond, Hold: hold,
			}
			_, ops, _ := runWith(t, plan, catalogued(t, "local"), t.Context(), func(w *Workers) {
				w.Claims.Reentrant = true
			})
			var early, late int
			var loaded time.Duration
			for _, op := range ops {
				switch {
				case op.Kind == history.Load:
					loaded = op.Return
				case op.Kind == history.Acquire && op.Hold != op.ID && op.Call-loaded < hold:
					early++
				case op.Kind == history.Acquire && op.Hold != op.ID:
					late++
				}
			}
			if early+late != plan.Visits || (early > 0) != want || late == 0 {
				t.Errorf("holds of %v: %d re-entries before it, %d after it, want some of both: %v", hold,
					early, late, want)
			}
		}
	})
}
