package checker

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

// passOn lets two workers pass a lock to each other; each waits while the other one holds it.
func (s *builder) passOn(times int) {
	for i := range times {
		w, at := int32(i%2), dur(10*i)
		hold := s.grant(w, at-5+20, at+20, 100)
		s.release(w, hold, at+26, at+27, history.OK)
	}
}

// killPrimary is the plan of one fault.
var killPrimary = []history.Injection{{Name: "kill-primary"}}

// activities are histories, with what judgeActivity says about each.
var activities = map[string]struct {
	write  func(*builder)
	status Status
	word   string
}{
	"enough":  {func(s *builder) { s.passOn(30) }, Pass, "at most 1 in 10, with 95 % confidence"},
	"nothing": {func(*builder) {}, Inconclusive, "0 contended hand-offs"},
	"too few": {func(s *builder) {
		s.passOn(10)
	}, Inconclusive, "9 contended hand-offs between workers, at least 20"},
	"one worker alone": {func(s *builder) {
		for i := range 50 {
			h := s.grant(1, dur(10*i), dur(10*i+1), 100)
			s.release(1, h, dur(10*i+2), dur(10*i+3), history.OK)
		}
	}, Inconclusive, "0 contended hand-offs"},
	"partial": {func(s *builder) {
		s.passOn(30)
		s.h.Partial = "cut at byte 7"
	}, Inconclusive, "partial: cut at byte 7"},
	"partial, as was allowed": {func(s *builder) {
		s.passOn(30)
		s.h.Partial, s.h.Allowed = "agent b was lost", true
	}, Pass, "as was allowed: agent b was lost"},
	"many unknown": {func(s *builder) {
		s.passOn(30)
		for i := range 20 {
			s.release(3, 0, dur(i), dur(i+1), history.Unknown)
		}
	}, Inconclusive, "20 of 50 outcomes are unknown"},
	"many unknown, of what may never have been granted": {func(s *builder) {
		s.passOn(30)
		for i := range 20 {
			h := s.grant(3, dur(400+10*i), dur(401+10*i), 100)
			s.h.Ops[len(s.h.Ops)-1].Outcome, s.h.Ops[len(s.h.Ops)-1].Reason = history.Unknown, history.Dropped
			s.release(3, h, dur(402+10*i), dur(403+10*i), history.Unknown)
		}
	}, Pass, "30 holds"},
	"a fault that was never injected": {func(s *builder) { s.passOn(30); s.h.Faults = killPrimary }, Inconclusive,
		"fault 0, kill-primary, was planned and not injected"},
	"a fault that met nobody": {func(s *builder) {
		s.passOn(30)
		s.h.Faults = killPrimary
		s.add(history.Op{Kind: history.Fault, Outcome: history.OK, Worker: -1, Key: -1, Call: 900, Return: 901})
	}, Inconclusive, "fault 0, kill-primary, coincided with neither"},
	"a fault that was not injected, for the machine paused": {func(s *builder) {
		s.passOn(30)
		s.h.Faults = []history.Injection{{Name: "delay"}}
		s.add(history.Op{Kind: history.Gap, Outcome: history.OK, Worker: -1, Key: -1, Call: dur(1),
			Return: dur(90)})
	}, Inconclusive, "was planned and not injected; the machine paused for"},
	"a fault that was being healed when somebody came": {func(s *builder) {
		s.passOn(30)
		s.h.Faults = killPrimary
		s.add(history.Op{Kind: history.Fault, Outcome: history.OK, Worker: -1, Key: -1, Call: 900, Return: 901})
		s.add(history.Op{Kind: history.Heal, Outcome: history.OK, Worker: -1, Key: -1, Call: 902, Return: 1000})
		h := s.grant(1, 950, 951, 100)
		s.release(1, h, 952, 953, history.OK)
	}, Inconclusive, "fault 0, kill-primary, coincided with neither"},
	"a fault by hand that met nobody": {func(s *builder) {
		s.passOn(30)
		s.h.Faults = []history.Injection{{Name: "kill-primary", ByHand: true}}
		s.add(history.Op{Kind: history.Fault, Outcome: history.OK, Worker: -1, Key: -1, Call: 900, Return: 901})
		s.add(history.Op{Kind: history.Heal, Outcome: history.OK, Worker: -1, Key: -1, Call: 902, Return: 903})
	}, Pass, "0 faults that coincided with a holder or waiter"},
	"a fault that met somebody": {func(s *builder) {
		s.passOn(30)
		s.h.Faults = killPrimary
		s.add(history.Op{Kind: history.Fault, Outcome: history.OK, Worker: -1, Key: -1, Call: 55, Return: 56})
	}, Pass, "1 fault that coincided with a holder or waiter"},
}

func TestActivity(t *testing.T) {
	for name, tt := range activities {
		t.Run(name, func(t *testing.T) {
			s := newBuilder()
			tt.write(s)
			expect(t, judgeActivity(s.prepared()), tt.status, "", tt.word)
		})
	}
}

// TestAFaultIsInForceAsLongAsItWasPlanned: a fault that waits for a holder may begin when it should end already.
func TestAFaultIsInForceAsLongAsItWasPlanned(t *testing.T) {
	for name, tt := range map[string]struct {
		timed         bool
		began, healed time.Duration // ms; 60 were planned
		status        Status
		word          string
	}{
		"healed as soon as it began": {true, 70, 71, Inconclusive, "fault 0, cut-holder, was planned for 60.0 ms and " +
			"in force for 1.00 ms only"},
		"healed early": {true, 20, 51, Pass, "1 fault that coincided"},
		"healed as soon as it began, when the seed drew it": {false, 70, 71, Pass, "1 fault that coincided"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBuilder()
			s.passOn(30)
			s.h.Faults = []history.Injection{
				{Name: "cut-holder", From: 10 * time.Millisecond, To: 70 * time.Millisecond, Timed: tt.timed},
			}
			s.add(history.Op{Kind: history.Fault, Outcome: history.OK, Worker: -1, Key: -1, Call: 10, Return: tt.began})
			s.add(history.Op{Kind: history.Heal, Outcome: history.OK, Worker: -1, Key: -1, Call: tt.healed,
				Return: tt.healed + 1})
			expect(t, judgeActivity(s.prepared()), tt.status, "", tt.word)
		})
	}
}

// drawBusy lets workers come and go, and injects faults at any time.
func drawBusy(r *rand.Rand) *builder {
	s := newBuilder()
	ends := r.IntN(4) > 0
	for w := range int32(1 + r.IntN(3)) {
		now := r.IntN(30)
		for range r.IntN(4) {
			key, begin := int32(r.IntN(2)), now
			for range r.IntN(3) {
				s.add(history.Op{Kind: history.Acquire, Worker: w, Key: key, Call: dur(now), Return: dur(now + 2),
					Outcome: history.Failed, Reason: history.Busy})
				now += 3 + r.IntN(5)
			}
			if r.IntN(4) > 0 {
				hold := s.add(history.Op{Kind: history.Acquire, Worker: w, Key: key, Call: dur(now),
					Return: dur(now + 2),
					Until:  dur(now + 12), TTL: 12, Outcome: history.OK})
				now += 3 + r.IntN(15)
				if r.IntN(4) > 0 {
					s.add(history.Op{Kind: history.Release, Worker: w, Key: key, Hold: hold, Call: dur(now),
						Return:  dur(now + 2),
						Outcome: history.Outcome(r.IntN(3))})
					now += 3
				}
			}
			if ends {
				s.add(history.Op{Kind: history.End, Worker: w, Key: key, Call: dur(begin), Return: dur(now)})
			}
			now += 1 + r.IntN(30)
		}
	}
	for n := range r.IntN(3) {
		s.h.Faults = append(s.h.Faults, history.Injection{Name: "f"})
		if at := r.IntN(100); r.IntN(5) > 0 {
			s.add(history.Op{Kind: history.Fault, Worker: -1, Key: -1, Call: dur(at), Return: dur(at + 1),
				Value: int64(n), Outcome: history.OK})
			if r.IntN(2) == 0 {
				s.add(history.Op{Kind: history.Heal, Worker: -1, Key: -1, Call: dur(at + 3), Return: dur(at + 4),
					Value: int64(n)})
			}
		}
	}
	for i := range s.h.Ops { // an ordered clock gives no stamp twice
		s.h.Ops[i].Call += dur(int(s.h.Ops[i].Worker) + 1)
		s.h.Ops[i].Return += dur(int(s.h.Ops[i].Worker) + 1)
	}
	return s
}

// metSomebody looks at every moment of a fault for a holder or a waiter.
func metSomebody(c *Case, n int64, granted func(int) bool, over func(int) time.Duration) bool {
	ends := false
	for _, op := range c.Ops {
		ends = ends || op.Kind == history.End
	}
	met := false
	for _, f := range c.Ops {
		if f.Kind != history.Fault || f.Value != n {
			continue
		}
		to := f.Return
		for _, h := range c.Ops {
			if h.Kind == history.Heal && h.Value == f.Value {
				to = max(to, h.Call) // from then on it is not in force
			}
		}
		for t := f.Call; t <= to; t += time.Millisecond / 2 {
			for i, op := range c.Ops {
				met = met || granted(i) && op.Call <= t && t <= over(i)
				met = met || op.Kind == history.Acquire && op.Call <= t && t <= op.Return
			}
			for _, v := range readTries(c) {
				met = met || ends && v.ops[0].Call <= t && t <= v.stop
			}
		}
	}
	return met
}

// everyMoment counts hand-offs and unmet faults by their definitions.
func everyMoment(c *Case) string {
	handOffs := 0
	over := func(i int) time.Duration { // end of the holder's belief after the grant Ops[i]
		end := c.Ops[i].Until
		for _, op := range c.Ops {
			if op.Kind == history.Release && op.Hold == c.Ops[i].ID {
				end = min(end, op.Return)
			}
		}
		return end
	}
	granted := func(i int) bool { return c.Ops[i].Kind == history.Acquire && c.Ops[i].Outcome == history.OK }
	for i := range c.Ops {
		if !granted(i) {
			continue
		}
		before, refused, start := -1, false, c.Ops[i].Call
		for j := range i {
			if op := &c.Ops[j]; op.Kind == history.Acquire && op.Key == c.Ops[i].Key {
				if refused = true; granted(j) {
					before, refused = j, false
				}
			}
		}
		for j := i - 1; j >= 0; j-- {
			if op := &c.Ops[j]; op.Worker == c.Ops[i].Worker && (op.Kind == history.End || granted(j)) {
				break
			} else if op.Worker == c.Ops[i].Worker && op.Kind == history.Acquire {
				start = op.Call
			}
		}
		if before >= 0 && c.Ops[before].Worker != c.Ops[i].Worker && (refused || start < over(before)) {
			handOffs++
		}
	}
	idle := 0
	for n := range c.Faults {
		if !metSomebody(c, int64(n), granted, over) {
			idle++
		}
	}
	return fmt.Sprintf("%v %d %d", idle > 0, handOffs, idle)
}

func TestActivityAgainstEveryMoment(t *testing.T) {
	p := property{
		histories: 100_000, draw: drawBusy, oracle: everyMoment,
		check: func(c *Case) string {
			v := judgeActivity(c)
			idle := strings.Count(v.Summary, "was planned and not injected") + strings.Count(v.Summary,
				"coincided with neither")
			return fmt.Sprintf("%v %d %d", idle > 0, c.effort().handOffs, idle)
		},
	}
	p.run(t)
}
