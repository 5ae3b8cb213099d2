package measure

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

// TestWhatIsNotKnownYet: the operations of the last two seconds have not arrived. For that time, no worker is shown
// as a holder. Operations that arrive later are shown correctly.
func TestWhatIsNotKnownYet(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	h := history.Header{Workers: 2, Keys: 1, Claims: history.Claims{Excludes: true},
		Faults: []history.Injection{{Name: "lost-grant"}}}
	v := NewViewer(NewMeter(Options{Workers: 2, Keys: 1, To: 10 * s, Excludes: true}), Head{Workers: 2, Keys: 1}, h,
		func(op *history.Op) (i history.Injection, words string) {
			if op.Kind == history.Fault {
				i = h.Faults[op.Value]
			}
			return i, "done"
		})
	id := func(lane, n int) history.ID { return history.ID(lane+1)<<40 | history.ID(n) }
	v.Observe(&history.Op{ID: id(0, 1), Hold: id(0, 1), Kind: history.Acquire, Outcome: history.OK, Call: 500 * ms,
		Return: 510 * ms, Until: 9 * s})
	v.Begin(0, "lost-grant", s)
	v.Known(s)
	early := v.Snapshot(3*s, "running", nil)
	mark := func(shot *Snapshot, worker int, at time.Duration) Cell {
		l := shot.Lanes[worker]
		return l.Cells[len(l.Cells)-1-int((shot.LanesEnd-at-1)/StripStep)]
	}
	if mark(early, 0, 900*ms) != Held|Whole || mark(early, 0, 1500*ms) != NotKnown ||
		mark(early, 1, 1500*ms) != NotKnown || early.Lanes[0].Mode != NotKnown {
		t.Errorf("known: %v, not known: %v and %v, now: %v", mark(early, 0, 900*ms), mark(early, 0, 1500*ms),
			mark(early, 1, 1500*ms), early.Lanes[0].Mode)
	}
	if len(early.Active) != 1 || !strings.Contains(early.Active[0], "lost-grant: is being injected") {
		t.Errorf("at work: %v", early.Active)
	}
	v.Observe(&history.Op{ID: id(0, 2), Hold: id(0, 1), Kind: history.Release, Outcome: history.OK, Call: 1200 * ms,
		Return: 1210 * ms})
	v.Observe(&history.Op{ID: id(2, 1), Kind: history.Fault, Worker: -1, Key: -1, Outcome: history.OK, Call: s,
		Return: 2600 * ms})
	v.Observe(&history.Op{ID: id(3, 1), Kind: history.Incident, Worker: -1, Key: -1, Outcome: history.OK,
		Call: 800 * ms, Return: 2700 * ms})
	v.Known(3 * s)
	late := v.Snapshot(3*s, "running", nil)
	if mark(late, 0, 1100*ms) != Held|Whole || mark(late, 0, 1500*ms) != 0 || late.Lanes[0].Mode&(NotKnown|Held) != 0 {
		t.Errorf("held: %v, then: %v, now: %v", mark(late, 0, 1100*ms), mark(late, 0, 1500*ms), late.Lanes[0].Mode)
	}
	if len(late.Active) != 1 || late.Active[0] != "lost-grant: done" || len(late.Events) != 2 ||
		!slices.IsSortedFunc(late.Events, func(a, b Event) int { return int(a.At - b.At) }) {
		t.Errorf("at work: %v, events: %+v", late.Active, late.Events)
	}
}

// TestAWaitThatGoesOnIsAmongTheLongest: the longest wait of a worker is at least as long as its current wait.
func TestAWaitThatGoesOnIsAmongTheLongest(t *testing.T) {
	t.Parallel()
	const s, ms = time.Second, time.Millisecond
	h := history.Header{Workers: 2, Keys: 1, Claims: history.Claims{Excludes: true}}
	m := NewMeter(Options{Workers: 2, Keys: 1, To: 10 * s, Excludes: true})
	v := NewViewer(m, Head{Workers: 2, Keys: 1}, h,
		func(*history.Op) (i history.Injection, words string) { return i, "" })
	for _, op := range []history.Op{
		{ID: 1<<40 | 1, Hold: 1<<40 | 1, Kind: history.Acquire, Outcome: history.OK, Call: 10 * ms, Return: 50 * ms,
			Until: 9 * s},
		{ID: 2<<40 | 1, Kind: history.Acquire, Worker: 1, Outcome: history.Failed, Reason: history.Busy, Call: 100 * ms,
			Return: 101 * ms},
	} {
		m.Observe(&op)
		v.Observe(&op)
	}
	shot := v.Snapshot(8*s+520*ms, "running", nil)
	if by := shot.LongestBy; by != 1 || time.Duration(shot.Fairness.Workers[by].Longest) != shot.Longest ||
		time.Duration(shot.Fairness.Worst.Longest) != shot.Longest && shot.Fairness.Worst.Worker == by {
		t.Errorf("longest now %v by w%02d, and %+v", shot.Longest, by, shot.Fairness)
	}
}
