package checker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hammerlock/history"
)

// sets makes the lock one of several keys, with the given number of callers.
func (s *builder) sets(callers int) {
	s.h.Claims, s.h.Callers, s.h.Wait = history.Claims{Excludes: true, Expires: true, Sets: true, Crosses: true},
		callers, 5*time.Second
}

// tries adds a try of a caller for several pages, counted from page 0. The caller's workers make its parts at the same
// time. It returns the hold of page 0.
func (s *builder) tries(w int32, pages int, call, ret time.Duration, out history.Outcome,
	token uint64) (first history.ID) {
	for page := range int32(pages) {
		op := history.Op{Kind: history.Acquire, Worker: w + page*int32(s.h.Callers), Key: page, Call: call, Return: ret,
			TTL: 3, Token: token, Outcome: out}
		if op.Reason = history.Busy; out == history.OK {
			op.Reason, op.Until = history.None, call+3
		}
		if id := s.add(op); page == 0 {
			first = id
		}
	}
	return first
}

func (s *builder) seen(at time.Duration, key int32, token uint64) {
	s.add(history.Op{Kind: history.Sight, Outcome: history.OK, Worker: -1, Key: key, Call: at, Return: at,
		Token: token, Until: at + 1})
}

// TestPartKept: a try for several pages that was refused must hold no page when it is answered.
func TestPartKept(t *testing.T) {
	for name, tt := range map[string]struct {
		write func(*builder)
		cause string
	}{
		"gives back before it is refused": {func(s *builder) { s.seen(2, 0, 7) }, ""},
		"keeps a part":                    {func(s *builder) { s.seen(4, 0, 7) }, history.PartKept},
		"a fault brings it back": {func(s *builder) {
			s.h.Faults = []history.Injection{
				{Name: "failover", Effect: history.Effect{
					Hits: []history.Party{history.Servers}, Loses: history.LosesWrites,
				}},
			}
			s.add(history.Op{Kind: history.Fault, Worker: -1, Key: -1, Call: 3, Return: 4})
			s.seen(5, 0, 7)
		}, ""},
		"of one page": {func(s *builder) {
			s.add(history.Op{
				Kind: history.Acquire, Worker: 1, Key: 0, Call: 4, Return: 5, Token: 8, Outcome: history.Failed,
				Reason: history.Busy,
			})
			s.seen(6, 0, 8)
		}, history.Phantom},
		"of another page, which was granted": {func(s *builder) {
			s.add(history.Op{Kind: history.Acquire, Worker: 1, Key: 2, Call: 4, Return: 5, TTL: 3, Until: 7, Token: 7,
				Outcome: history.OK})
			s.seen(6, 2, 7)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBuilder()
			s.tick = time.Second
			s.sets(2)
			s.tries(0, 2, 1, 3, history.Failed, 7)
			tt.write(s)
			if f := s.prepared().examine(); fmt.Sprint(f.incidents) != fmt.Sprint(wanted(tt.cause)) {
				t.Errorf("got %v, want %q", f.incidents, tt.cause)
			}
		})
	}
}

// wanted returns the causes with one incident of the given cause: one refused try concerns the page that was seen.
func wanted(cause string) map[string]int64 {
	if cause == "" {
		return map[string]int64{}
	}
	return map[string]int64{cause: 1}
}

// TestCrossing: two callers wait for several pages each in one call, while no worker holds a page.
func TestCrossing(t *testing.T) {
	for name, tt := range map[string]struct {
		write  func(*builder)
		status Status
		cause  string
	}{
		"wait for each other": {func(s *builder) {
			s.tries(0, 2, 2, 9, history.Failed, 1)
			s.tries(1, 2, 2, 9, history.Failed, 2)
		}, Fail, history.Crossing},
		"do not claim it": {func(s *builder) {
			s.h.Claims.Crosses = false
			s.tries(0, 2, 2, 9, history.Failed, 1)
			s.tries(1, 2, 2, 9, history.Failed, 2)
		}, Pass, ""},
		"one waits alone": {func(s *builder) { s.tries(0, 2, 2, 9, history.Failed, 1) }, Fail, history.Stuck},
		"each waits for one page": {func(s *builder) {
			s.tries(0, 1, 2, 9, history.Failed, 1)
			s.tries(1, 1, 2, 9, history.Failed, 2)
		}, Fail, history.Stuck},
		"another worker holds a third page": {func(s *builder) {
			s.tries(0, 2, 2, 9, history.Failed, 1)
			s.tries(1, 2, 2, 9, history.Failed, 2)
			for at := time.Duration(2); at < 10; at += 2 {
				h := s.add(history.Op{Kind: history.Acquire, Worker: 2, Key: 2, Call: at, Return: at, TTL: 3,
					Until: at + 3, Outcome: history.OK})
				s.add(history.Op{Kind: history.Release, Worker: 2, Key: 2, Hold: h, Call: at + 1, Return: at + 1,
					Outcome: history.OK})
			}
		}, Pass, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBuilder()
			s.tick, s.h.Bounds.Gap = time.Second, time.Millisecond
			s.sets(3)
			first := s.tries(2, 1, 0, 1, history.OK, 9)
			s.add(history.Op{Kind: history.Release, Worker: 2, Hold: first, Call: 1, Return: 1, Outcome: history.OK})
			tt.write(s)
			h := s.tries(2, 1, 10, 11, history.OK, 10)
			s.add(history.Op{Kind: history.Release, Worker: 2, Hold: h, Call: 11, Return: 11, Outcome: history.OK})
			if v := judgeLiveness(s.prepared()); v.Status != tt.status || v.Cause != tt.cause {
				t.Errorf("got %v %q: %s, want %v %q", v.Status, v.Cause, v.Summary, tt.status, tt.cause)
			}
		})
	}
}

// TestCrossingToTheEnd: two callers wait for each other until the history ends, so no worker is served after that.
func TestCrossingToTheEnd(t *testing.T) {
	for claimed, cause := range map[bool]string{true: history.Crossing, false: ""} {
		s := newBuilder()
		s.tick, s.h.Bounds.Gap = time.Second, time.Millisecond
		s.sets(3)
		s.h.Claims.Crosses = claimed
		s.tries(0, 2, 2, 12, history.Failed, 1)
		s.tries(1, 2, 2, 12, history.Failed, 2)
		if v := judgeLiveness(s.prepared()); v.Cause != cause || (v.Status == Fail) != claimed {
			t.Errorf("claimed %v: got %v %q: %s", claimed, v.Status, v.Cause, v.Summary)
		}
	}
}

// drawSets lets callers try for one to three pages, one call after another. Tokens are seen now and then.
func drawSets(r *rand.Rand) *builder {
	s := newBuilder()
	s.sets(2)
	var tokens []uint64
	for w := range int32(2) {
		now := 0
		for range 1 + r.IntN(4) {
			call, pages, token := now, 1+r.IntN(3), uint64(10*(len(tokens)+1))
			tokens = append(tokens, token)
			out := history.Failed
			if r.IntN(4) == 0 {
				out = history.Unknown
			}
			for _, page := range r.Perm(3)[:pages] {
				first, last := call+r.IntN(2), call+2+r.IntN(2) // every call has a stamp of its own
				at := r.IntN(pages)
				for slices.ContainsFunc(s.h.Ops, func(op history.Op) bool {
					return op.Worker == w+2*int32(at) && op.Token == token
				}) {
					at = (at + 1) % pages
				}
				s.add(history.Op{Kind: history.Acquire, Worker: w + 2*int32(at), Key: int32(page), Call: dur(first),
					Return: dur(last), TTL: 3,
					Token: token, Outcome: out, Reason: history.Busy})
				now = max(now, last)
			}
			now += r.IntN(3)
		}
	}
	for range r.IntN(4) {
		s.seen(dur(r.IntN(16)), int32(r.IntN(3)), tokens[r.IntN(len(tokens))])
	}
	return s
}

// TestPartKeptAgainstAllPairs compares with an oracle that looks at all pairs of two tries, and of a try and a sight.
func TestPartKeptAgainstAllPairs(t *testing.T) {
	p := property{
		histories: 40_000, draw: drawSets,
		check: func(c *Case) string {
			f := c.examine()
			return fmt.Sprint(f.incidents[history.PartKept], " ", f.incidents[history.Phantom])
		},
		oracle: func(c *Case) string {
			found := map[bool]int{}
			for i, a := range c.Ops {
				if a.Kind != history.Acquire || a.Outcome != history.Failed {
					continue
				}
				kept, several, held := false, false, false
				for k, b := range c.Ops {
					same := b.Token == a.Token && b.Key == a.Key
					kept = kept || b.Kind == history.Sight && same && b.Call >= a.Return
					if b.Kind == history.Acquire && k != i {
						several = several || a.Worker%2 == b.Worker%2 && a.Call < b.Return && b.Call < a.Return
						held = held || same && b.Outcome != history.Failed
					}
				}
				if kept && !held {
					found[several]++
				}
			}
			return fmt.Sprint(found[true], " ", found[false])
		},
	}
	p.run(t)
}

// TestSetsAgainstOnePage: a lock of several pages has the same verdict of liveness as if all pages were one.
func TestSetsAgainstOnePage(t *testing.T) {
	weigh := func(c *Case) string {
		v, l := weighLiveness(c)
		return fmt.Sprintf("%v %d %d %d %v %v",
			v.Causes[history.Stuck]+v.Causes[history.Deadlock]+v.Causes[history.LostWakeup] > 0,
			v.Causes[history.Stuck], v.Causes[history.Deadlock], v.Causes[history.LostWakeup], l.dead, l.deadAll)
	}
	p := property{
		histories: 20_000, check: weigh,
		draw: func(r *rand.Rand) *builder {
			s := drawLives(r)
			s.h.Claims.Sets, s.h.Claims.Crosses, s.h.Claims.Excludes = true, true, true
			return s
		},
		oracle: func(c *Case) string {
			one := history.History{Header: c.Header, Ops: slices.Clone(c.Ops)}
			one.Claims.Sets = false
			for i := range one.Ops {
				one.Ops[i].Key = min(one.Ops[i].Key, 0)
			}
			flat, err := Prepare(&one)
			if err != nil {
				return err.Error()
			}
			return weigh(flat)
		},
	}
	p.run(t)
}
