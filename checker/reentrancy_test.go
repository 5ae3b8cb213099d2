package checker

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"hammerlock/history"
)

// enter adds an Acquire of a hold that the worker has, or of its first hold.
func (s *builder) enter(hold history.ID, at int, out history.Outcome, told, fence int64) history.ID {
	return s.add(history.Op{Kind: history.Acquire, Outcome: out, Hold: hold, Worker: 1, Call: dur(at),
		Return: dur(at + 1),
		Value:  told, Fence: fence, TTL: 1000})
}

func (s *builder) leave(hold history.ID, at int, out history.Outcome, told int64) {
	s.add(history.Op{
		Kind: history.Release, Outcome: out, Hold: hold, Worker: 1, Call: dur(at), Return: dur(at + 1), Value: told,
	})
}

const ok, unknown = history.OK, history.Unknown

var nestings = map[string]struct {
	write       func(*builder)
	status      Status
	cause, word string
}{
	"twice in, twice out": {func(s *builder) {
		h := s.enter(0, 0, ok, 1, 5)
		s.enter(h, 2, ok, 2, 5)
		s.leave(h, 4, ok, 1)
		s.leave(h, 6, ok, 0)
	}, Pass, "", "1 holds re-entered"},
	"renewed by somebody who knows no hold, and re-entered after the first lease": {func(s *builder) {
		h := s.enter(0, 0, ok, 1, 5)
		s.h.Ops[0].Token = 7
		s.add(history.Op{Kind: history.Extend, Outcome: ok, Worker: 2, Key: -1, Token: 7, Call: 900, Return: 901,
			TTL: 1000, Until: 1900})
		s.enter(h, 1500, ok, 2, 5)
		s.leave(h, 1510, ok, 1)
		s.leave(h, 1520, ok, 0)
	}, Pass, "", "1 holds re-entered"},
	"without counts": {func(s *builder) {
		h := s.enter(0, 0, ok, 0, 5)
		s.enter(h, 2, ok, 0, 5)
		s.leave(h, 4, ok, 0)
		s.leave(h, 6, ok, 0)
	}, Pass, "", "1 holds re-entered"},
	"without counts, released once too often": {func(s *builder) {
		h := s.enter(0, 0, ok, 0, 5)
		s.enter(h, 2, ok, 0, 5)
		s.leave(h, 4, ok, 0)
		s.leave(h, 6, ok, 0)
		s.leave(h, 8, ok, 0)
	}, Pass, "", ""},
	"without counts, an unknown acquire may count": {func(s *builder) {
		h := s.enter(0, 0, ok, 0, 5)
		s.enter(h, 2, unknown, 0, 0)
		s.leave(h, 4, ok, 0)
		s.leave(h, 6, ok, 0)
	}, Pass, "", ""},
	"never re-entered": {func(s *builder) { s.leave(s.enter(0, 0, ok, 1, 5), 2, ok, 0) }, Inconclusive, "", "no hold"},
	"a retried acquire counts twice": {func(s *builder) {
		h := s.enter(0, 0, ok, 1, 5)
		s.enter(h, 2, ok, 3, 5)
	}, Fail, "count", ""},
	"an unknown acquire may count": {func(s *builder) {
		h := s.enter(0, 0, ok, 1, 5)
		s.enter(h, 2, unknown, 0, 0)
		s.enter(h, 4, ok, 3, 5)
	}, Pass, "", ""},
	"free after the first release": {func(s *builder) {
		h := s.enter(0, 0, ok, 1, 5)
		s.enter(h, 2, ok, 2, 5)
		s.leave(h, 4, ok, 0)
	}, Fail, "count", ""},
	"the outer release says how many are left when the inner one was refused": {func(s *builder) {
		h := s.enter(0, 0, ok, 1, 5)
		s.enter(h, 2, ok, 2, 5)
		s.add(history.Op{Kind: history.Release, Outcome: history.Failed, Reason: history.Refused, Hold: h, Worker: 1,
			Call: 4, Return: 5, Value: 1})
		s.leave(h, 6, ok, 0)
	}, Pass, "", "1 holds re-entered"},
	"free after the outer release was refused": {func(s *builder) {
		h := s.enter(0, 0, ok, 1, 5)
		s.enter(h, 2, ok, 2, 5)
		s.add(history.Op{Kind: history.Release, Outcome: history.Failed, Reason: history.Refused, Hold: h, Worker: 1,
			Call: 4, Return: 5})
		s.enter(h, 6, ok, 1, 5)
	}, Fail, "count", ""},
	"another token inside": {func(s *builder) {
		h := s.enter(0, 0, ok, 1, 5)
		s.enter(h, 2, ok, 2, 6)
	}, Fail, "token-changed", ""},
	"the owner is refused": {func(s *builder) {
		h := s.enter(0, 0, ok, 1, 5)
		s.add(history.Op{Kind: history.Acquire, Outcome: history.Failed, Reason: history.Busy, Hold: h, Worker: 1,
			Call: 2, Return: 3})
	}, Fail, "self-refusal", ""},
	"refused after a release without an answer": {func(s *builder) {
		h := s.enter(0, 0, ok, 1, 5)
		s.leave(h, 2, unknown, 0)
		s.add(history.Op{Kind: history.Acquire, Outcome: history.Failed, Reason: history.Busy, Hold: h, Worker: 1,
			Call: 6, Return: 7})
	}, Pass, "", ""},
	"the owner is told that it has lost what is its own": {func(s *builder) {
		h := s.enter(0, 0, ok, 1, 5)
		s.add(history.Op{Kind: history.Acquire, Outcome: history.Failed, Reason: history.Lost, Hold: h, Worker: 1,
			Call: 2, Return: 3})
		s.enter(h, 6, ok, 1, 7) // nothing is judged after that
	}, Fail, "self-refusal", "1 wrong answers"},
	"the owner is told that a server has lost what was its own": {func(s *builder) {
		s.h.Faults = []history.Injection{
			{Effect: history.Effect{Hits: []history.Party{history.Servers}, Loses: history.LosesKeys}},
		}
		h := s.enter(0, 0, ok, 1, 5)
		s.add(history.Op{Kind: history.Fault, Worker: -1, Key: -1, Call: 2, Return: 3})
		s.add(history.Op{Kind: history.Acquire, Outcome: history.Failed, Reason: history.Lost, Hold: h, Worker: 1,
			Call: 4, Return: 5})
	}, Pass, "", ""},
	"a new hold after the lease": {func(s *builder) {
		h := s.enter(0, 0, ok, 1, 5)
		s.enter(h, 2, ok, 2, 5)
		s.enter(h, 2000, ok, 1, 6)
	}, Pass, "", ""},
}

func TestReentrancy(t *testing.T) {
	for name, tt := range nestings {
		t.Run(name, func(t *testing.T) {
			s := newBuilder()
			s.h.Claims.Expires = true
			tt.write(s)
			expect(t, judgeReentrancy(s.prepared()), tt.status, tt.cause, tt.word)
		})
	}
}

// TestReleasesWithoutAnAnswerOfALockThatCounts: whether such a release was an inner one follows from the counts.
func TestReleasesWithoutAnAnswerOfALockThatCounts(t *testing.T) {
	next := func(s *builder) { s.grant(2, 20, 21, 1000) }
	for name, tt := range map[string]struct {
		write              func(s *builder, hold history.ID)
		exclusion, release string // causes
	}{
		"an inner one frees nothing": {func(s *builder, h history.ID) {
			s.leave(h, 4, unknown, 0)
			next(s)
		}, history.DoubleGrant, ""},
		"by a later answer it was an inner one": {func(s *builder, h history.ID) {
			s.enter(h, 4, ok, 3, 0)
			s.leave(h, 6, unknown, 0)
			next(s)
			s.leave(h, 30, ok, 1)
		}, history.DoubleGrant, ""},
		"it may be the outermost one": {func(s *builder, h history.ID) {
			s.leave(h, 4, ok, 1)
			s.leave(h, 6, unknown, 0)
			next(s)
		}, "", ""},
		"it may come after a later inner one": {func(s *builder, h history.ID) {
			s.leave(h, 4, unknown, 0)
			s.leave(h, 6, ok, 1)
			next(s)
		}, "", ""},
		"the second one may be the outermost one": {func(s *builder, h history.ID) {
			s.leave(h, 4, unknown, 0)
			s.leave(h, 6, unknown, 0)
			next(s)
		}, "", ""},
		"an inner one may renew the lease": {func(s *builder, h history.ID) {
			s.leave(h, 900, unknown, 0)
			s.leave(h, 1400, ok, 0)
		}, "", ""},
	} {
		s := newBuilder()
		s.h.Claims = history.Claims{Excludes: true, Expires: true, Owned: true, Reentrant: true}
		h := s.enter(0, 0, ok, 1, 0)
		s.enter(h, 2, ok, 2, 0)
		tt.write(s, h)
		c := s.prepared()
		if v := checkExclusion(c); v.Cause != tt.exclusion {
			t.Errorf("%s: exclusion got %q: %s, want %q", name, v.Cause, v.Summary, tt.exclusion)
		}
		if v := checkRelease(c); v.Cause != tt.release {
			t.Errorf("%s: release got %q: %s, want %q", name, v.Cause, v.Summary, tt.release)
		}
	}
}

// TestAReEntryMayBeANewGrant: a re-entry after the lease may begin a second lease, and others may have had the lock in
// between. Another grant beside either lease is a mistake.
func TestAReEntryMayBeANewGrant(t *testing.T) {
	for name, tt := range map[string]struct {
		count    int64 // that the re-entry was told
		from, to time.Duration
		lost     bool // a second release was told that the hold is lost
		want     Status
	}{
		"another hold in between":           {1, 1100, 1110, false, Pass},
		"in between, without counts":        {0, 1100, 1110, false, Pass},
		"one release ends it":               {0, 1100, 1110, true, Pass},
		"another hold after it":             {0, 1230, 1240, false, Pass},
		"another hold beside the first one": {1, 500, 510, false, Fail},
		"another hold goes on":              {1, 1100, 1300, false, Fail},
		"another hold beside the new one":   {1, 1210, 1215, false, Fail},
	} {
		s := newBuilder()
		s.h.Claims = history.Claims{Excludes: true, Expires: true, Owned: true, Reentrant: true}
		h := s.enter(0, 0, ok, min(tt.count, 1), 0)
		s.enter(h, 1200, ok, tt.count, 0)
		s.h.Ops[0].Until, s.h.Ops[1].Until = 1000*s.tick, 2200*s.tick
		s.leave(h, 1220, ok, 0)
		if tt.lost {
			s.add(history.Op{Kind: history.Release, Outcome: history.Failed, Reason: history.Lost, Hold: h, Worker: 1,
				Call: 1222, Return: 1223})
		}
		s.release(2, s.grant(2, tt.from, tt.from+1, 1000), tt.to-1, tt.to, ok)
		c := s.prepared()
		e, l := checkExclusion(c), checkLeaseValidity(c)
		if (e.Status == Fail || l.Status == Fail) != (tt.want == Fail) {
			t.Errorf("%s: exclusion %v: %s; lease-validity %v: %s; want %v", name, e.Status, e.Summary, l.Status,
				l.Summary, tt.want)
		}
	}
}

// drawNested lets one owner enter and leave a lock that counts; most answers are right.
func drawNested(r *rand.Rand) *builder {
	s := newBuilder()
	s.h.Claims.Expires = true
	n, now := int64(1), 0
	hold := s.enter(0, 0, history.OK, 1, 0)
	wild := r.IntN(2) == 0
	for range 1 + r.IntN(8) {
		now += 2 + r.IntN(30)
		if r.IntN(40) == 0 {
			now += 1000 + r.IntN(20)
			n = 0
		}
		out, takes := history.OK, true
		if r.IntN(4) == 0 {
			out, takes = history.Unknown, r.IntN(2) == 0
		}
		in := r.IntN(2) == 0
		if !in && n == 0 && out == history.OK {
			in = true
		}
		if in && takes {
			n++
		} else if !in && takes {
			n = max(n-1, 0)
		}
		told := n
		if wild && r.IntN(5) == 0 {
			told = int64(r.IntN(4))
		}
		if out == history.Unknown {
			told = 0
		}
		if in {
			s.enter(hold, now, out, told, 0)
		} else {
			s.leave(hold, now, out, told)
		}
	}
	return s
}

// explained tries all choices for the calls without an answer: when they took effect, or that they did not. It looks
// for a choice that explains every answer. It stops when the lease may have ended, or when the owner was told that the
// lock is free.
func explained(c *Case) string {
	var ops []*history.Op
	proof, inner := c.Ops[0].Call, false
	for i := range c.Ops[1:] {
		op := &c.Ops[i+1]
		if op.Return > proof+1000*1_000_000 {
			break
		}
		ops = append(ops, op)
		inner = inner || op.Kind == history.Acquire
		if op.Kind == history.Acquire && op.Outcome == history.OK {
			proof = op.Call
		}
		if op.Kind == history.Release && op.Outcome == history.OK && op.Value == 0 {
			break
		}
	}
	// index of the operation before which each one takes effect: its own, or a later one if it had no answer
	lands := make([]int, len(ops))
	fits := func() bool {
		n := int64(1)
		for at := range len(ops) {
			for i := range at + 1 {
				op := ops[i]
				if lands[i] != at {
					continue
				}
				if op.Kind == history.Acquire {
					n++
				} else if n > 0 {
					n--
				} else if op.Outcome == history.OK {
					return false
				}
				final := op.Kind == history.Release && op.Value == 0
				if op.Outcome == history.OK && (op.Value != 0 || final) && op.Value != n {
					return false
				}
			}
		}
		return true
	}
	var any func(i int) bool
	any = func(i int) bool {
		if i == len(ops) {
			return fits()
		}
		for lands[i] = i; ; lands[i]++ {
			if any(i + 1) {
				return true
			}
			if ops[i].Outcome != history.Unknown || lands[i] == len(ops) {
				return false
			}
		}
	}
	right := any(0)
	return fmt.Sprintf("%v %v", right, inner)
}

func TestReentrancyAgainstEveryChoice(t *testing.T) {
	p := property{
		histories: 120_000, draw: drawNested, oracle: explained,
		check: func(c *Case) string {
			v := judgeReentrancy(c)
			return fmt.Sprintf("%v %v", v.Status != Fail, v.Exposed > 0)
		},
	}
	p.run(t)
}
