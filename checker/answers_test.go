package checker

import (
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

// wrongLeases counts by cause what the lease-validity checker has to find.
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
			if excess := op.Until - op.Call - (tinyTTL - 1); excess > op.Latency() {
				n["over-claim"]++
			} else if excess > 0 {
				between = append(between, op)
			}
		}
		if r := t.release; r != nil && r.Outcome == history.Failed && t.sure(expires) > r.Return {
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

// lossCause looks among all other holds for one whose release, after its lease, may have ended this one.
func lossCause(list []told, t told, expires bool) string {
	for _, k := range list {
		r := k.release
		if k.acquire != t.acquire && r != nil && r.Outcome == history.OK && k.sure(expires) < r.Return &&
			r.Return > t.acquire.Call && r.Call < t.release.Return {
			return "foreign-release"
		}
	}
	return "premature-loss"
}

func answersDisagree(t testing.TB, h *history.History) string {
	c := prepared(t, h)
	list := read(h)
	if got, want := checkRelease(c).Violations, falseReleases(list, h.Claims.Expires); got != want {
		return fmt.Sprintf("release: got %d, want %d", got, want)
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
	}
	for _, cause := range []string{"over-claim", "premature-loss", "foreign-release", "silent-reacquire", "false-release"} {
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
func certainly(list []told, slack int) bool {
	for a := range list {
		for b := range a {
			always := true
			for shift := -slack; shift <= slack; shift++ {
				if list[a].acquire.Process == list[b].acquire.Process && shift != 0 {
					continue
				}
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

// What is called certain is so whatever the clocks do; what overlaps by the clocks as they are is never passed over.
func TestSlackAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	proven, possibly := 0, 0
	histories := many(40_000)
	for range histories {
		h := tiny(r.IntN)
		for i := range h.Ops {
			h.Ops[i].Process = int16(h.Ops[i].Worker % 2)
		}
		h.Processes, h.Bounds.Slack = 2, 2
		c := prepared(t, h)
		s := newSweeper(c)
		list := read(h)
		certain, possible2 := false, false
		s.beliefs(c.byKey[0], func(_ pair, sure bool) { certain, possible2 = certain || sure, possible2 || !sure })
		if certain && !certainly(list, 2) {
			t.Fatalf("called certain, and is not\n%s", dump(h))
		}
		if (certain || possible2) != twoBelieve(list) {
			t.Fatalf("got %v, want %v\n%s", certain || possible2, twoBelieve(list), dump(h))
		}
		s.half = 1
		lost := false
		s.losses(c.byKey[0], true, func(pair) { lost = true })
		if s.half = 0; lost {
			exact := false
			s.losses(c.byKey[0], true, func(pair) { exact = true })
			if !exact {
				t.Fatalf("a loss that is none by the clocks as they are\n%s", dump(h))
			}
		}
		if wrong := overexposed(c, 2); wrong != "" {
			t.Fatalf("%s\n%s", wrong, dump(h))
		}
		if certain {
			proven++
		} else if possible2 {
			possibly++
		}
	}
	if proven < histories/40 || possibly < histories/40 {
		t.Errorf("got %d proven and %d possible histories, too few of one kind", proven, possibly)
	}
}

// overexposed finds a hold that is said to have been put to the test though no try was surely made during it, whatever the
// clocks are, or the other way round.
func overexposed(c *Case, slack time.Duration) string {
	for i := range c.holds {
		h := &c.holds[i]
		want := false
		for k := range c.Ops {
			op := &c.Ops[k]
			if op.Kind != history.Acquire || op.Worker == h.Worker || k <= int(c.index.at(h.ID)) || h.Outcome != history.OK {
				continue
			}
			at, sure := op.Call, true
			if op.Outcome != history.OK {
				at = op.Return
			}
			for shift := -slack; shift <= slack; shift++ {
				if op.Process == h.Process && shift != 0 {
					continue
				}
				inside := h.Return < at+shift && at+shift < h.trusted()
				if op.Process == h.Process {
					inside = op.Call < h.trusted()
				}
				sure = sure && inside
			}
			want = want || sure && op.Call < h.trusted()
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
