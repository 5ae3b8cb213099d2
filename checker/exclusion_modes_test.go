package checker

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hammerlock/history"
)

// shared turns some holds of a history into shared ones. Each of these has up to the given number of permits (most),
// and its store becomes a second load.
func shared(h *history.History, draw func(n int) int, most int) *history.History {
	readers := map[history.ID]bool{}
	for i := range h.Ops {
		op := &h.Ops[i]
		if op.Kind == history.Acquire {
			op.Permits = uint16(draw(most + 1))
			readers[op.ID] = op.Permits > 0
		}
		if op.Kind == history.Store && readers[op.Hold] {
			op.Kind = history.Load
		}
	}
	return h
}

// TestReadersAgainstOracle compares the sweeps with the oracles on histories with shared holds.
func TestReadersAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range many(120_000) {
		h := shared(tiny(r.IntN), r.IntN, 1)
		if wrong := disagreement(t, h); wrong != "" {
			t.Fatalf("%s\n%s", wrong, dump(h))
		}
	}
}

func TestReadersAgainstOracleShrinking(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		draw := func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "n") }
		h := shared(tiny(draw), draw, 1)
		if wrong := disagreement(t, h); wrong != "" {
			r.Fatalf("%s\n%s", wrong, dump(h))
		}
	})
}

// TestAReleaseProvesAPermit: a release that succeeded proves that its hold existed, although its Acquire, or the
// release before it, had no answer.
func TestAReleaseProvesAPermit(t *testing.T) {
	for name, tt := range map[string]struct {
		permits int
		until   time.Duration // release of the other hold
		first   history.Outcome
		want    string
	}{
		"no acquire answered":            {1, 100, history.Unknown, history.ForeignRelease},
		"no first release answered":      {1, 100, history.OK, history.ForeignRelease},
		"permits enough":                 {2, 100, history.Unknown, ""},
		"released before the acquire":    {1, 30, history.Unknown, ""},
		"the other one came back by now": {1, 59, history.OK, ""},
	} {
		s := newBuilder()
		s.h.Claims = history.Claims{Excludes: true, Expires: true, Owned: true, Permits: tt.permits}
		hold := s.add(history.Op{Kind: history.Acquire, Outcome: tt.first, Worker: 1, Call: 2, Return: 4, TTL: 300,
			Permits: 1})
		if tt.first == history.OK {
			s.release(1, hold, 6, 8, history.Unknown)
		}
		other := s.add(history.Op{Kind: history.Acquire, Outcome: history.OK, Worker: 2, Call: 20, Return: 21,
			TTL: 300, Until: 320, Permits: 1})
		s.release(1, hold, 60, 61, history.OK)
		s.release(2, other, tt.until, tt.until+1, history.OK)
		if v := checkExclusion(s.prepared()); v.Cause != tt.want {
			t.Errorf("%s: got %q: %s, want %q", name, v.Cause, v.Summary, tt.want)
		}
	}
}

// fits tries all moments at which the holds may have begun. The result legal says whether some choice leaves enough
// permits at all times. Here a hold that begins late does not end late. The result sound is false if a hold alone is
// impossible, and short says that a hold may have ended before its answer.
func fits(permits int, list []told, expires bool) (legal, sound, short bool) {
	var granted []told
	var ends []int
	for _, t := range list {
		if t.acquire.Outcome != history.OK {
			continue
		}
		lives := t.lives(expires)
		if len(lives) == 0 {
			return false, false, false
		}
		end := lives[0][1]
		for _, l := range lives {
			end = min(end, l[1])
		}
		granted, ends = append(granted, t), append(ends, end)
		short = short || end <= int(t.acquire.Return)
	}
	starts := make([]int, len(granted))
	var place func(n int) bool
	place = func(n int) bool {
		if n < len(granted) {
			for x := int(granted[n].acquire.Call); x <= int(granted[n].acquire.Return); x++ {
				if starts[n] = x; place(n + 1) {
					return true
				}
			}
			return false
		}
		for _, at := range starts { // the number is largest when a hold begins
			var now []told
			for i, t := range granted {
				if starts[i] <= at && at < max(ends[i], starts[i]) {
					now = append(now, t)
				}
			}
			if tooMany(permits, now) {
				return false
			}
		}
		return true
	}
	return place(0), true, short
}

func semaphoreDisagreement(t testing.TB, h *history.History) (wrong string, illegal bool) {
	c := prepared(t, h)
	list, s := read(h), newSweeper(c)
	believed, lost := false, false
	s.crowds(c.byKey[0], s.believes, func(int32, []timed) { believed = true })
	s.crowds(c.byKey[0], s.guaranteed, func(int32, []timed) { lost = true })
	if want := tooManyBelieve(h.Claims.Permits, list); believed != want {
		return "beliefs", false
	}
	legal, sound, short := fits(h.Claims.Permits, list, h.Claims.Expires)
	if sound && lost == legal && (lost || !short) {
		return "permits", false
	}
	return "", lost
}

// TestPermitsAgainstOracle compares the sums of permits with a search over all moments and all choices of beginnings.
func TestPermitsAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	illegal, histories := 0, many(120_000)
	for range histories {
		permits := 1 + r.IntN(4)
		h := shared(tiny(r.IntN), r.IntN, permits)
		h.Claims.Permits = permits
		wrong, bad := semaphoreDisagreement(t, h)
		if wrong != "" {
			t.Fatalf("%s of %d\n%s", wrong, permits, dump(h))
		}
		if bad {
			illegal++
		}
	}
	if illegal < histories/20 || illegal > histories*19/20 {
		t.Errorf("got %d illegal histories of %d, want both kinds", illegal, histories)
	}
}

// always reports whether too many holders believe at the same time for every difference of two processes' clocks.
func always(permits, slack int, list []told) bool {
	for shift := -slack; shift <= slack; shift++ {
		found := false
		for at := -slack; at < horizon+slack; at++ {
			var now []told
			for _, t := range list {
				if t.believesAt(at + shift*int(t.acquire.Process)) {
					now = append(now, t)
				}
			}
			found = found || tooMany(permits, now)
		}
		if !found {
			return false
		}
	}
	return true
}

// TestSharedSlackAgainstOracle: if the judge calls an overlap of shared holds certain, it is one for all clocks.
func TestSharedSlackAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	const slack = 2
	proven, histories := [2]int{}, many(40_000)
	for range histories {
		permits := max(r.IntN(8)-3, 0)
		h := shared(tiny(r.IntN), r.IntN, max(permits, 1))
		for i := range h.Ops {
			h.Ops[i].Process = int16(h.Ops[i].Worker % 2)
		}
		h.Processes, h.Bounds.Slack, h.Claims.Permits = 2, slack, permits
		c := prepared(t, h)
		s, certain := newSweeper(c), false
		found := func(int32, []timed) { certain = true }
		if permits == 0 {
			s.beliefs(c.byKey[0], func(_ pair, sure bool) { certain = certain || sure })
		} else {
			for _, g := range c.groups(c.byKey[0]) {
				s.scope = g.scope
				s.crowds(g.holds, s.believes, found)
			}
		}
		if certain && !always(permits, slack, read(h)) {
			t.Fatalf("called certain with %d permits, and is not\n%s", permits, dump(h))
		}
		if certain {
			proven[min(permits, 1)]++
		}
	}
	if proven[0] < histories/100 || proven[1] < histories/100 {
		t.Errorf("got %v proven histories of readers and of permits, too few of one kind", proven)
	}
}

// TestTheEvidenceOfASemaphoreAddsUp: the evidence has just enough holders to exceed the number of permits.
func TestTheEvidenceOfASemaphoreAddsUp(t *testing.T) {
	for name, tt := range map[string]struct{ permits, each, named int }{
		"one permit each": {3, 1, 4},
		"two permits":     {3, 2, 2},
		"no room for one": {1, 1, 2},
	} {
		s := newScript()
		s.Claims.Permits = tt.permits
		for w := int32(1); w <= 4; w++ {
			s.acquire(w, time.Duration(w), time.Duration(w)+1, 300)
			s.last().Permits = uint16(tt.each)
		}
		if v := Exclusion.Check(s.prepare(t)); v.Status != Fail || len(v.Evidence) != tt.named {
			t.Errorf("%s: %s names %d holds, want %d: %v", name, v.Status, len(v.Evidence), tt.named, v.Story)
		}
	}
}
