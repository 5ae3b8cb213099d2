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

// sure is the last instant of a lease that nobody could take away: the oracle's reading of last proof + T1.
func (t told) sure(expires bool) time.Duration {
	switch {
	case !expires:
		return history.Forever
	case t.extended():
		return t.extend.Call + tinyTTL - 1
	}
	return t.acquire.Call + tinyTTL - 1
}

// falseReleases counts the releases that succeeded after another's grant that was possible only if the hold was over:
// all pairs are tried.
func falseReleases(list []told, expires bool) int64 {
	n := int64(0)
	for _, i := range list {
		if i.acquire.Outcome != history.OK || i.release == nil || i.release.Outcome != history.OK {
			continue
		}
		for _, j := range list {
			between := j.acquire.Outcome == history.OK && j.acquire.Call > i.acquire.Return && j.acquire.Return < i.release.Call
			taken := i.extended() && i.extend.Return > j.acquire.Call
			if between && j.acquire.Return > i.sure(expires) && !taken {
				n++
				break
			}
		}
	}
	return n
}

// falseRefusals counts the releases and extensions that were refused as if another worker had the lock, while it was
// theirs for sure, and no other call of theirs may have come in between.
func falseRefusals(list []told, expires bool) (n int64) {
	for _, t := range list {
		for _, two := range [][2]*history.Op{{t.extend, t.release}, {t.release, t.extend}} {
			op, other := two[0], two[1]
			if t.acquire.Outcome != history.OK || op == nil || op.Outcome != history.Failed || op.Reason == history.Lost {
				continue
			}
			proof, alone := t.acquire.Call, true
			if other != nil && other.Call < op.Return {
				before := other.Return <= op.Call
				gone := other.Kind == history.Release && other.Outcome != history.Failed
				if alone = before && !gone && other.Outcome != history.Unknown; alone && other.Outcome == history.OK {
					proof = other.Call
				}
			}
			if alone && (!expires || op.Return < proof+tinyTTL) {
				n++
			}
		}
	}
	return n
}

// wrongLeases counts by cause what the lease-validity checker has to find. Proven are foreign releases by what
// exclusion found.
func wrongLeases(list []told, expires bool) map[string]int64 {
	n := map[string]int64{}
	var between, answers []*history.Op // with deadlines between call + T1 and return + T1; all
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
				n["over-claim"]++
			case 2*excess < op.Latency(): // it may have taken its own time
			default:
				between = append(between, op)
			}
		}
		if r := t.release; r != nil && r.Outcome == history.Failed && r.Reason == history.Lost && t.sure(expires) > r.Return {
			n[lossCause(list, t, expires)]++
		}
		back := t.release != nil && t.release.Outcome == history.OK && t.extended() && t.extend.Call > t.release.Return
		if t.extended() && expires && t.extend.Call > t.acquire.Return+tinyTTL+1 || back {
			n["silent-reacquire"]++
		}
	}
	var slow []*history.Op
	for _, a := range answers {
		if slices.ContainsFunc(between, func(b *history.Op) bool { return a.Latency() >= b.Latency() }) {
			slow = append(slow, a)
		}
	}
	if often := mostApart(between, nil); often >= 3 && 2*often >= mostApart(slow, nil) {
		n["over-claim"] += int64(len(between))
	}
	return n
}

// mostApart is how many operations, of those that are left, can be taken so that none overlaps another: it tries all.
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

// lossCause looks among all other holds for one whose release may have ended this one: after its lease, though this one
// was granted later.
func lossCause(list []told, t told, expires bool) string {
	for _, k := range list {
		r := k.release
		if k.acquire == t.acquire || r == nil || r.Outcome != history.OK || r.Call >= t.release.Return {
			continue
		}
		if k.sure(expires) < r.Return && r.Return > t.acquire.Call {
			return "foreign-release"
		}
	}
	return "premature-loss"
}

func answersDisagree(t testing.TB, h *history.History) string {
	c := prepared(t, h)
	c.stories = map[int32]*account{}
	for _, holds := range c.byKey {
		c.stories[c.holds[holds[0]].Key] = nil // stories have an oracle of their own
	}
	list := read(h)
	released := checkRelease(c).Causes
	for cause, want := range map[string]int64{"false-release": falseReleases(list, h.Claims.Expires), "false-refusal": falseRefusals(list, h.Claims.Expires)} {
		if got := released[cause]; got != want {
			return fmt.Sprintf("%s: got %d, want %d", cause, got, want)
		}
	}
	got, want := checkLeaseValidity(c).Causes, wrongLeases(list, h.Claims.Expires)
	for _, cause := range leaseCauses {
		if got[cause] != want[cause] {
			return fmt.Sprintf("%s: got %d, want %d", cause, got[cause], want[cause])
		}
	}
	return ""
}

// late draws a tiny history, and often puts the extension and the release off until others have been granted.
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
	seen := map[string]int{}
	histories := many(100_000)
	for range histories {
		h := late(r.IntN)
		if wrong := answersDisagree(t, h); wrong != "" {
			t.Fatalf("%s\n%s", wrong, dump(h))
		}
		for cause := range wrongLeases(read(h), h.Claims.Expires) {
			seen[cause]++
		}
		if falseReleases(read(h), h.Claims.Expires) > 0 {
			seen["false-release"]++
		}
		if falseRefusals(read(h), h.Claims.Expires) > 0 {
			seen["false-refusal"]++
		}
	}
	for _, cause := range []string{"over-claim", "premature-loss", "foreign-release", "silent-reacquire", "false-release", "false-refusal"} {
		if seen[cause] < histories/1000 {
			t.Errorf("%s was seen %d times, too seldom to test it", cause, seen[cause])
		}
	}
}

func TestAnswersAgainstOracleShrinking(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h := late(func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "n") })
		if wrong := answersDisagree(t, h); wrong != "" {
			r.Fatalf("%s\n%s", wrong, dump(h))
		}
	})
}

// certainly tries every difference that the clocks of two processes may have: do two believe at once in all cases?
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

// spread puts a history on two processes of which only the slack is known, or over three on two machines.
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

// truth is a history as it may have been: each clock was off by what it may have been off.
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

// What is called certain is so whatever the clocks do; what overlaps by the clocks as they are is never passed over.
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

// loses tells whether the servers of a history cannot have granted what they did.
func loses(c *Case) (found bool) {
	s := newSweeper(c)
	for _, g := range c.groups(c.byKey[0]) {
		s.scope = g.scope
		s.losses(g.holds, true, func(pair) { found = true })
	}
	return found
}

// tryBefore is the refused try that was one call with the grant that came of it; nil if it was none.
func tryBefore(c *Case, k int) *history.Op {
	for i := k - 1; i >= 0; i-- {
		if op := &c.Ops[i]; op.Kind == history.Acquire && op.Worker == c.Ops[k].Worker && (op.Hold == op.ID || op.Hold == 0) {
			if op.Key == c.Ops[k].Key && op.Outcome == history.Failed && c.Ops[k].Call <= op.Return+1 {
				return op
			}
			return nil
		}
	}
	return nil
}

// overexposed finds a hold that is said to have been put to the test though no try was surely made during it, whatever
// the clocks are, or the other way round.
func overexposed(c *Case) string {
	for i := range c.holds {
		h := &c.holds[i]
		want := false
		for k := range c.Ops {
			op := &c.Ops[k]
			if op.Kind != history.Acquire || op.Worker == h.Worker || k <= int(h.acquire) || h.Outcome != history.OK {
				continue
			}
			first, last := op.Call, op.Call // it would have been granted at any of these moments
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
				break // what comes after the next grant is a try for that hold
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
	All = []Checker{{Name: "wrong", Check: func(*Case) Verdict { return Verdict{Status: Fail, Cause: harnessError, Summary: "we disagree"} }}}
	if _, err := Judge(c); err == nil {
		t.Error("got no error, want one")
	}
}
