package measure

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hammerlock/history"
)

// TestReplayGoesToViolations: a lock without mutual exclusion has two holders at three times. Two of these violations
// follow each other quickly, so the replay gives them one time.
func TestReplayGoesToViolations(t *testing.T) {
	const ms = time.Millisecond
	h := &history.History{Header: history.Header{Workers: 2, Keys: 1, Claims: history.Claims{Excludes: true}},
		Notes: map[history.ID]string{}}
	id := func(lane, n int) history.ID { return history.ID(lane+1)<<40 | history.ID(n) }
	for i, at := range []time.Duration{100 * ms, 300 * ms, 2000 * ms} {
		for w := range int32(2) {
			hold, begin := id(int(w), 2*i+1), at+time.Duration(w)*10*ms
			h.Ops = append(h.Ops,
				history.Op{ID: hold, Hold: hold, Kind: history.Acquire, Worker: w, Outcome: history.OK, Call: begin,
					Return: begin + ms, Until: at + time.Second},
				history.Op{ID: hold + 1, Hold: hold, Kind: history.Release, Worker: w, Outcome: history.OK,
					Call: begin + 50*ms, Return: begin + 51*ms})
		}
	}
	for i, what := range []string{"n2 became primary", "n1 became a replica of n2"} {
		op := history.Op{ID: id(2, i+1), Kind: history.Role, Worker: -1, Key: -1, Outcome: history.OK, Call: 2500 * ms,
			Return: time.Duration(2600+100*i) * ms}
		h.Ops, h.Notes[op.ID] = append(h.Ops, op), what
	}
	slices.SortFunc(h.Ops, func(a, b history.Op) int { return int(a.Return - b.Return) })
	r := NewReplay(h, nil)
	first, ok := r.Violation(0, 1)
	second, again := r.Violation(first, 1)
	_, more := r.Violation(second, 1)
	back, found := r.Violation(second, -1)
	if !ok || !again || more || !found || back != first || first < 300*ms || first > 400*ms || second < 2000*ms ||
		second > 2100*ms {
		t.Errorf("violations at %s (%v) and %s (%v), another: %v, back to %s (%v)", first, ok, second, again, more,
			back, found)
	}
	if shot := r.At(first); shot.Safety.Violations == 0 {
		t.Errorf("at %s nothing is violated", first)
	}
	for at, want := range map[time.Duration]string{
		second:    "[{n1 [{0s primary}]} {n2 [{0s replica}]}]",
		2650 * ms: "[{n1 [{0s primary}]} {n2 [{0s replica} {2.6s primary}]}]",
		2700 * ms: "[{n1 [{0s primary} {2.7s replica}]} {n2 [{0s replica} {2.6s primary}]}]",
	} {
		if got := fmt.Sprint(r.At(at).Roles); got != want {
			t.Errorf("at %s: %s, want %s", at, got, want)
		}
	}
}

// TestStripsKeepAMinute compares the cells copied from the ring with the painted ones.
func TestStripsKeepAMinute(t *testing.T) {
	var s strip
	marks := map[int64]Cell{}
	for n := int64(0); n < 3*StripCells; n += 7 {
		mark := Waited << (n % 5)
		s.paint(time.Duration(n)*StripStep, time.Duration(n+1)*StripStep, mark)
		if marks[n] = mark; mark == Held {
			marks[n] |= Whole
		}
	}
	for _, end := range []int64{s.head, s.head - 5, s.head + 9, 2*StripCells - 1, 10} {
		for _, n := range []int{1, 60, StripCells} {
			for i, got := range s.last(n, end) {
				at := end - int64(n) + 1 + int64(i)
				want := marks[at]
				if at <= s.head-StripCells {
					want = 0
				}
				if got != want {
					t.Fatalf("%d cells up to %d of %d: cell %d is %d, want %d", n, end, s.head, at, got, want)
				}
			}
		}
	}
}

func TestSpread(t *testing.T) {
	var s Spread
	for _, d := range []time.Duration{-1, 0, 9999, 10 * time.Microsecond, 19 * time.Microsecond, 50 * time.Second,
		time.Hour} {
		s.record(d)
	}
	if s[0] != 3 || s[1] != 2 || s[Bands-1] != 2 || BandFrom(Bands-1) != 50*time.Second ||
		BandFrom(4) != 100*time.Microsecond {
		t.Errorf("got %v", s)
	}
}

// TestRolesAreBounded: published roles do not change, and only the latest changes are kept.
func TestRolesAreBounded(t *testing.T) {
	var r Roles
	var shots []Roles
	for i := range 3 * keptRoles {
		r.saw(time.Duration(i), &NodeState{State: "up", Role: fmt.Sprint(i / 2)})
		shots = append(shots, r)
	}
	for i, shot := range shots {
		n := min(i/2+1, keptRoles)
		if len(shot.Spans) != n || shot.Spans[n-1].What != fmt.Sprint(i/2) ||
			shot.Spans[0].What != fmt.Sprint(i/2+1-n) {
			t.Fatalf("after %d looks: %v", i+1, shot.Spans)
		}
	}
	r.saw(time.Hour, &NodeState{State: "down", Role: "?"})
	if last := r.Spans[len(r.Spans)-1]; last != (Role{time.Hour, "down"}) {
		t.Errorf("got %v", last)
	}
}
