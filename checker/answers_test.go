package checker

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hammerlock/history"
)

// legal reports whether a right lock can have given these answers, if only one hold exists. It tries all instants. A
// lease ends, by its server's clock, up to one tick earlier or later than its length after the last call that set it.
func legal(t told, expires bool) bool {
	var calls []*history.Op
	for _, op := range []*history.Op{t.acquire, t.extend, t.release} {
		if op != nil && !shownNothing(t, op) {
			calls = append(calls, op)
		}
	}
	instants := make([]time.Duration, len(calls))
	var draw func(k int) bool
	draw = func(k int) bool {
		if k == len(calls) {
			return inOrder(calls, instants, expires)
		}
		to := calls[k].Return
		if calls[k].Outcome == history.Unknown {
			to = 2 * horizon // late enough for the call to have no effect
		}
		for instants[k] = calls[k].Call; instants[k] <= to; instants[k]++ {
			if draw(k + 1) {
				return true
			}
		}
		return false
	}
	return draw(0)
}

// shownNothing reports whether an answer proves nothing, because another call of the same hold may have taken effect
// during the call.
func shownNothing(t told, op *history.Op) bool {
	if op.Outcome != history.Failed || op.Reason != history.Conflict {
		return false
	}
	for _, other := range []*history.Op{t.extend, t.release} {
		if other != nil && other != op && other.Call < op.Return &&
			(other.Outcome == history.Unknown || other.Return > op.Call) {
			return true
		}
	}
	return false
}

// inOrder reports whether the answers to the calls are right if the calls took effect at the given instants. Calls
// with the same instant may have any order. A call without an answer may have had no effect.
func inOrder(calls []*history.Op, at []time.Duration, expires bool) bool {
	var next func(done int, held bool, begin time.Duration) bool
	next = func(done int, held bool, begin time.Duration) bool {
		first := time.Duration(history.Forever)
		for k := range calls {
			if done>>k&1 == 0 {
				first = min(first, at[k])
			}
		}
		for k, op := range calls {
			if done>>k&1 != 0 || at[k] > first {
				continue
			}
			rest, x := done|1<<k, at[k]
			alive := held && (!expires || x <= begin+tinyTTL+1)
			over := !held || expires && x >= begin+tinyTTL-1
			unheard := op.Outcome == history.Unknown
			switch {
			case op.Kind == history.Acquire:
				if next(rest, true, x) || unheard && next(rest, false, 0) {
					return true
				}
			case op.Outcome == history.Failed:
				early := calls[0].Outcome == history.OK && done&1 == 0 && calls[0].Call < op.Call
				if over && !early && next(rest, false, 0) {
					return true
				}
			case unheard && next(rest, held, begin), alive && next(rest, op.Kind == history.Extend, x):
				return true
			case op.Kind == history.Extend && !unheard && held && (!expires || op.Call <= begin+tinyTTL+1):
				for x++; x <= op.Return; x++ { // the server is stopped between its look and the new expiry
					if next(rest, true, x) {
						return true
					}
				}
			}
		}
		return done == 1<<len(calls)-1
	}
	return next(0, false, 0)
}

func overClaims(list []told, expires bool) (n int64) {
	var between, answers []*history.Op // answers with deadlines between call + T1 and return + T1; all answers
	for _, t := range list {
		if t.acquire.Outcome != history.OK {
			continue
		}
		for _, op := range []*history.Op{t.acquire, t.extend} {
			if op == nil || op.Outcome != history.OK || !expires {
				continue
			}
			answers = append(answers, op)
			switch excess := op.Until - op.Call - tinyTTL; { // servers may round by 1
			case excess <= 0:
			case excess > op.Latency():
				n++
			case 8*(op.Latency()-excess) > op.Latency(): // it counts from the middle of the call
			default:
				between = append(between, op)
			}
		}
	}
	var slow []*history.Op
	for _, a := range answers {
		if slices.ContainsFunc(between, func(b *history.Op) bool { return a.Latency() >= b.Latency() }) {
			slow = append(slow, a)
		}
	}
	if often := mostApart(between, nil); often >= 3 && 2*often >= mostApart(slow, nil) {
		n += int64(len(between))
	}
	return n
}

// mostApart tries all choices of the operations left. It returns the largest number without an overlap.
func mostApart(left, taken []*history.Op) int {
	if len(left) == 0 {
		return len(taken)
	}
	op, most := left[0], mostApart(left[1:], taken)
	if !slices.ContainsFunc(taken, func(t *history.Op) bool { return t.Call < op.Return && op.Call < t.Return }) {
		most = max(most, mostApart(left[1:], append(taken[:len(taken):len(taken)], op)))
	}
	return most
}

// answersDisagree compares the verdicts on deadlines and, if all holds share the lock, on the answers to each hold.
func answersDisagree(t testing.TB, h *history.History) (wrong string, illegal int) {
	c := prepared(t, h)
	list := read(h)
	got, want := checkLeaseValidity(c).Causes[history.OverClaim], overClaims(list, h.Claims.Expires)
	if got != want {
		return fmt.Sprintf("over-claim: got %d, want %d", got, want), 0
	}
	for i := range h.Ops {
		if h.Ops[i].Kind == history.Acquire {
			h.Ops[i].Permits = 1
		}
	}
	c = prepared(t, h)
	told := c.tell(c.byKey[0])
	if told.untold {
		return "no story", 0
	}
	for _, one := range list {
		if one.crash != nil {
			continue
		}
		n := c.holdAt(one.acquire.ID)
		got, want := len(told.ofHold[n]) > 0, !legal(one, h.Claims.Expires)
		if illegal += int(min(len(told.ofHold[n]), 1)); got != want {
			return fmt.Sprintf("the answers of w%d: got wrong %v, want %v", one.acquire.Worker, got, want), 0
		}
	}
	return "", illegal
}

// late draws a tiny history, and often delays the extension and the release until another worker was granted the lock.
func late(draw func(n int) int) *history.History {
	h := tiny(draw)
	for i := range h.Ops {
		if op := &h.Ops[i]; op.Kind == history.Extend || op.Kind == history.Release {
			by := time.Duration(draw(3) * 8)
			op.Call, op.Return, op.Until = op.Call+by, op.Return+by, op.Until+by
			if op.Kind == history.Extend && draw(6) == 0 {
				op.Outcome, op.Until, op.Reason = history.Failed, 0, history.Busy
			}
			if op.Kind == history.Release && op.Outcome == history.Failed && draw(2) == 0 {
				op.Reason = history.Conflict
			}
		}
	}
	return h
}

func TestAnswersAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	claims, answers := 0, 0
	histories := many(20_000)
	for range histories {
		h := late(r.IntN)
		wrong, illegal := answersDisagree(t, h)
		if wrong != "" {
			t.Fatalf("%s\n%s", wrong, dump(h))
		}
		answers += illegal
		claims += int(min(overClaims(read(h), h.Claims.Expires), 1))
	}
	if claims < histories/100 || answers < histories/100 {
		t.Errorf("%d over-claims, %d wrong answers: too few to test them", claims, answers)
	}
}

func TestAnswersAgainstOracleShrinking(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h := late(func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "n") })
		if wrong, _ := answersDisagree(t, h); wrong != "" {
			r.Fatalf("%s\n%s", wrong, dump(h))
		}
	})
}

// certainly tries every possible difference of two processes' clocks: do two holders' beliefs overlap in all cases?
func certainly(c *Case, list []told) bool {
	for a := range list {
		for b := range a {
			slack := int(c.slack(list[a].acquire.Process, list[b].acquire.Process))
			always := true
			for shift := -slack; shift <= slack; shift++ {
				together := false
				for at := -slack; at < horizon+slack; at++ {
					together = together || list[a].believesAt(at) && list[b].believesAt(at+shift)
				}
				always = always && together
			}
			if always {
				return true
			}
		}
	}
	return false
}

// spread puts a history on two processes whose slack alone is known, or on three processes on two machines.
func spread(h *history.History, draw func(n int) int) {
	processes, first := 2, 0
	h.Processes, h.Bounds.Slack = 2, 2
	if draw(2) == 0 {
		doubt := func(machine int) history.Doubt {
			return history.Doubt{Machine: machine, Own: time.Duration(draw(2)), Offset: time.Duration(draw(3))}
		}
		h.Bounds.Agreement = history.Agree([]history.Doubt{{}, doubt(1), doubt(1), doubt(2)})
		h.Bounds.Doubts[2].Offset = h.Bounds.Doubts[1].Offset
		h.Bounds.Agreement = history.Agree(h.Bounds.Doubts)
		h.Processes, processes, first = 4, 3, 1
	}
	for i := range h.Ops {
		h.Ops[i].Process = int16(first + int(h.Ops[i].Worker)%processes)
	}
}

// truth is a history as it may have happened: it moves each clock by a possible error.
func truth(h *history.History, draw func(n int) int) *history.History {
	off := func(most time.Duration) time.Duration { return time.Duration(draw(2*int(most)+1)) - most }
	shifts := []time.Duration{10, 10 + off(h.Bounds.Slack)}
	if doubts := h.Bounds.Doubts; len(doubts) > 0 {
		machines := []time.Duration{0, off(doubts[1].Offset), off(doubts[3].Offset)}
		shifts = nil
		for _, d := range doubts {
			shifts = append(shifts, 10+machines[d.Machine]+off(d.Own))
		}
	}
	was := *h
	was.Bounds.Agreement = history.Agreement{}
	was.Ops = slices.Clone(h.Ops)
	for i := range was.Ops {
		op := &was.Ops[i]
		shift := shifts[op.Process]
		op.Call += shift
		for _, t := range []*time.Duration{&op.Return, &op.Until} {
			if *t != 0 && *t != history.Forever {
				*t += shift
			}
		}
	}
	slices.SortStableFunc(was.Ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	return &was
}

// The judge may call an overlap certain only if it exists for all possible clocks. It must report every overlap of the
// stamps as certain or as possible.
func TestSlackAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	proven, possibly, lost := 0, 0, 0
	histories := many(40_000)
	for range histories {
		h := tiny(r.IntN)
		spread(h, r.IntN)
		c := prepared(t, h)
		s := newSweeper(c)
		list := read(h)
		certain, possible2 := false, false
		s.beliefs(c.byKey[0], func(_ pair, sure bool) { certain, possible2 = certain || sure, possible2 || !sure })
		if certain && !certainly(c, list) {
			t.Fatalf("called certain, and is not\n%s", dump(h))
		}
		if (certain || possible2) != tooManyBelieve(0, list) {
			t.Fatalf("got %v, want %v\n%s", certain || possible2, tooManyBelieve(0, list), dump(h))
		}
		if loses(c) {
			lost++
			for range 3 {
				was := prepared(t, truth(h, r.IntN))
				if !loses(was) {
					t.Fatalf("a loss that may be none\n%s\nas in\n%s", dump(h), dump(was.History))
				}
			}
		}
		if wrong := overexposed(c); wrong != "" {
			t.Fatalf("%s\n%s", wrong, dump(h))
		}
		if certain {
			proven++
		} else if possible2 {
			possibly++
		}
	}
	if proven < histories/40 || possibly < histories/40 || lost < histories/40 {
		t.Errorf("got %d proven and %d possible histories, %d with a loss: too few of one kind", proven, possibly, lost)
	}
}

// loses reports whether the servers of a history cannot have granted all of its holds.
func loses(c *Case) (found bool) {
	s := newSweeper(c)
	for _, g := range c.groups(c.byKey[0]) {
		s.scope = g.scope
		s.losses(g.holds, true, func(pair) { found = true })
	}
	return found
}

// tryBefore returns the refused try that was part of the same call as the grant Ops[k]; nil if none exists.
func tryBefore(c *Case, k int) *history.Op {
	for i := k - 1; i >= 0; i-- {
		if op := &c.Ops[i]; op.Kind == history.Acquire && op.Worker == c.Ops[k].Worker &&
			(op.Hold == op.ID || op.Hold == 0) {
			if op.Key == c.Ops[k].Key && op.Outcome == history.Failed && c.Ops[k].Call <= op.Return+1 {
				return op
			}
			return nil
		}
	}
	return nil
}

// overexposed finds a hold whose field Exposed is wrong. The field must be true if, whatever the clocks show, another
// worker certainly tried during the hold; otherwise it must be false.
func overexposed(c *Case) string {
	for i := range c.holds {
		h := &c.holds[i]
		want := false
		for k := range c.Ops {
			op := &c.Ops[k]
			if op.Kind != history.Acquire || op.Worker == h.Worker || k <= int(h.acquire) || h.Outcome != history.OK {
				continue
			}
			first, last := op.Call, op.Call // the try could have been granted at any of these moments
			if op.Outcome != history.OK {
				first, last = op.Return, op.Return
			} else if before := tryBefore(c, k); before != nil {
				first = before.Call
			}
			slack := c.slack(op.Process, h.Process)
			for at := first; at <= last; at++ {
				sure := true
				for shift := -slack; shift <= slack; shift++ {
					inside := h.Return < at+shift && at+shift < h.trusted()
					if slack == 0 {
						inside = min(op.Call, first) < h.trusted()
					}
					sure = sure && inside
				}
				want = want || sure && min(op.Call, first) < h.trusted()
			}
			if op.Outcome == history.OK {
				break // tries after the next grant are tries for that hold
			}
		}
		if h.Outcome == history.OK && h.Exposed != want {
			return fmt.Sprintf("the hold of w%d: exposed %v, want %v", h.Worker, h.Exposed, want)
		}
	}
	return ""
}

// A checker that contradicts porcupine stops the judge.
func TestHarnessError(t *testing.T) {
	s := newScript()
	handOffs(s)
	c := s.prepare(t)
	saved := All
	defer func() { All = saved }()
	All = []Checker{
		{Name: "wrong", Check: func(*Case) Verdict {
			return Verdict{Status: Fail, Cause: harnessError, Summary: "we disagree"}
		}},
	}
	if _, err := Judge(c); err == nil {
		t.Error("got no error, want one")
	}
}
