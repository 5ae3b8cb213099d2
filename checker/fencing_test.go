package checker

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"hammerlock/history"
)

// fenced adds a grant with a fencing token.
func (s *builder) fenced(w int32, call, ret int, fence int64) history.ID {
	return s.add(history.Op{
		Kind: history.Acquire, Outcome: history.OK, Worker: w, Call: dur(call), Return: dur(ret), Fence: fence,
	})
}

func (s *builder) fencedStore(w int32, call int, fence int64, seen history.ID, out history.Outcome) history.ID {
	op := history.Op{Kind: history.Store, Outcome: out, Worker: w, Call: dur(call), Return: dur(call + 1),
		Fence: fence, Seen: seen}
	if out == history.Failed {
		op.Reason = history.Fenced
	}
	return s.add(op)
}

// TestAFenceIsDrawnWithTheGrant: only one holder has the lock at a time. So a hold that was given back before another
// one was answered was granted first, if the other one was certainly alive when it was answered, or later.
func TestAFenceIsDrawnWithTheGrant(t *testing.T) {
	for _, tt := range []struct {
		ttl   int
		later history.Outcome // of the release of the other hold
		want  Status
	}{{100, history.Unknown, Fail}, {4, history.Unknown, Inconclusive}, {4, history.OK, Fail}} {
		s := newBuilder()
		s.h.Claims.Fences, s.h.Claims.Excludes, s.h.Claims.Owned, s.h.Claims.Expires = true, true, true, true
		s.release(2, s.fenced(2, 1, 2, 9), 3, 4, history.OK)
		h := s.fenced(1, 0, 5, 7)
		s.h.Ops[len(s.h.Ops)-1].TTL = dur(tt.ttl) * s.tick
		s.release(1, h, 6, 7, tt.later)
		v := judgeFencing(s.prepared())
		if v.Status != tt.want || v.Cause != map[Status]string{Fail: history.Regressed}[tt.want] {
			t.Errorf("lease %d, later %s: got %s %q: %s", tt.ttl, tt.later, v.Status, v.Cause, v.Summary)
		}
	}
}

func TestFencing(t *testing.T) {
	tests := map[string]struct {
		write       func(*builder)
		status      Status
		cause, word string
	}{
		"in order":  {func(s *builder) { s.fenced(1, 0, 1, 7); s.fenced(2, 2, 3, 9) }, Pass, "", "2 fencing tokens"},
		"one grant": {func(s *builder) { s.fenced(1, 0, 1, 7) }, Inconclusive, "", "fewer than two"},
		"at once, in either order": {func(s *builder) {
			s.fenced(1, 0, 5, 9)
			s.fenced(2, 1, 3, 7)
		}, Inconclusive, "", "only 0 of 2"},
		"backwards": {func(s *builder) { s.fenced(1, 0, 1, 9); s.fenced(2, 2, 3, 7) }, Fail, "regressed", "1 faults"},
		"twice":     {func(s *builder) { s.fenced(1, 0, 5, 9); s.fenced(2, 1, 3, 9) }, Fail, "repeated", ""},
		"none":      {func(s *builder) { s.fenced(1, 0, 1, 0); s.fenced(2, 2, 3, 9) }, Fail, "no-token", ""},
		"a stale store is taken": {func(s *builder) {
			s.h.Fenced = true
			s.fenced(1, 0, 1, 1)
			s.fenced(2, 2, 3, 2)
			s.fencedStore(2, 4, 2, 0, history.OK)
			s.fencedStore(1, 6, 1, 0, history.OK)
		}, Fail, "stale-store", ""},
		"a stale store is taken after what it saw": {func(s *builder) {
			s.h.Fenced = true
			s.fenced(1, 0, 1, 1)
			s.fenced(2, 2, 3, 2)
			seen := s.fencedStore(2, 6, 2, 0, history.Unknown)
			s.fencedStore(1, 6, 1, seen, history.OK)
		}, Fail, "stale-store", ""},
		"a stale store is refused": {func(s *builder) {
			s.h.Fenced = true
			s.fenced(1, 0, 1, 1)
			s.fenced(2, 2, 3, 2)
			s.fencedStore(2, 4, 2, 0, history.OK)
			s.fencedStore(1, 6, 1, 0, history.Failed)
		}, Pass, "", "1 stale stores refused"},
		"a counter without a fence takes anything": {func(s *builder) {
			s.fenced(1, 0, 1, 1)
			s.fenced(2, 2, 3, 2)
			s.fencedStore(2, 4, 2, 0, history.OK)
			s.fencedStore(1, 6, 1, 0, history.OK)
		}, Pass, "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newBuilder()
			s.h.Claims.Fences = true
			tt.write(s)
			expect(t, judgeFencing(s.prepared()), tt.status, tt.cause, tt.word)
		})
	}
}

func drawFences(r *rand.Rand) *builder {
	s := newBuilder()
	s.h.Fenced = r.IntN(3) > 0
	s.h.Bounds.Slack, s.h.Processes = dur(r.IntN(3)*int(s.tick)), 1+r.IntN(2)
	wild := r.IntN(3) == 0
	stores := []history.ID{0}
	for n := range 2 + r.IntN(8) {
		call := 3*n + r.IntN(4)
		fence := int64(n + 1)
		if wild && r.IntN(3) == 0 {
			fence = int64(r.IntN(n + 2))
		}
		op := history.Op{
			Worker: int32(r.IntN(3)), Key: int32(r.IntN(2)), Call: dur(call),
			Return: dur(call + 1 + r.IntN(5)), Fence: fence,
		}
		op.Process = int16(int(op.Worker) % s.h.Processes)
		if op.Outcome = history.OK; r.IntN(8) == 0 {
			op.Outcome = history.Unknown
		}
		if r.IntN(2) == 0 {
			op.Kind = history.Acquire
			s.add(op)
			continue
		}
		op.Kind, op.Seen = history.Store, stores[r.IntN(len(stores))]
		stores = append(stores, s.add(op))
	}
	return s
}

// pairs looks at every pair of operations.
func pairs(c *Case) string {
	regressed, repeated, none, stale := map[int]bool{}, map[int]bool{}, 0, map[int]bool{}
	for i := range c.Ops {
		y := &c.Ops[i]
		if y.Outcome != history.OK {
			continue
		}
		if y.Kind == history.Acquire && y.Fence == 0 {
			none++
		}
		for j := range c.Ops {
			x := &c.Ops[j]
			if i == j || x.Key != y.Key || x.Kind != y.Kind || x.Fence == 0 || y.Fence == 0 {
				continue
			}
			slack := c.Bounds.Slack
			if x.Process == y.Process {
				slack = 0
			}
			earlier := x.Outcome == history.OK && x.Return+slack < y.Call
			switch {
			case y.Kind == history.Store:
				if x.Fence > y.Fence && (earlier || y.Seen == x.ID) && c.Fenced {
					stale[i] = true
				}
			case x.Outcome == history.OK && x.Fence == y.Fence && j < i:
				repeated[i] = true
			case earlier && x.Fence > y.Fence:
				regressed[i] = true
			}
		}
	}
	return fmt.Sprintf("%v %d %d %d %d", len(regressed)+len(repeated)+none+len(stale) > 0, len(regressed),
		len(repeated), none, len(stale))
}

func TestFencingAgainstEveryPair(t *testing.T) {
	p := property{
		histories: 120_000, draw: drawFences, oracle: pairs,
		check: func(c *Case) string {
			v := judgeFencing(c)
			return fmt.Sprintf("%v %d %d %d %d", v.Status == Fail, v.Causes["regressed"], v.Causes["repeated"],
				v.Causes["no-token"], v.Causes["stale-store"])
		},
	}
	p.run(t)
}
