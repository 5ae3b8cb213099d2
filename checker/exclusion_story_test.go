package checker

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/glossary"
)

// TestAStoryIsInTheOrderOfEffects: a release freed another worker's grant. It was called before the grant and answered
// after it. The story must tell the release after the grant.
func TestAStoryIsInTheOrderOfEffects(t *testing.T) {
	s := newScript()
	late := s.acquire(3, 0, 1, 100)
	s.acquire(1, 145, 151, 400)
	s.release(late, 140, 160)
	s.acquire(2, 170, 171, 400)
	v := Exclusion.Check(s.prepare(t))
	at := func(text string) int {
		return slices.IndexFunc(v.Story, func(line string) bool { return strings.HasPrefix(line, text) })
	}
	const release = "the release by w03 was called at 0.140000 s and answered at 0.160000 s: it freed the lock of w01"
	if v.Cause != history.ForeignRelease || at("w01 was granted") < 0 || at("w01 was granted") > at(release) ||
		at(release) > at("w02 was granted") {
		t.Errorf("got %s %q\n%s", v.Status, v.Cause, strings.Join(v.Story, "\n"))
	}
}

// TestAHolderThatWasToldHoldsNothing: the server forgot a grant because of a fault, and its holder was told so. So two
// grants were made within a lease, but no two workers held the lock at once.
func TestAHolderThatWasToldHoldsNothing(t *testing.T) {
	for told, want := range map[bool]string{
		true:  "within the lease of another that did not rely on it any more",
		false: "two workers held the lock at once",
	} {
		s := newScript()
		a := s.acquire(1, 0, 1, 300)
		s.fault(serverDies, 2, 3)
		if told {
			s.op(history.Lose, 1, 100, 100).Hold = a
		}
		s.acquire(2, 120, 121, 300)
		if v := Exclusion.Check(s.prepare(t)); v.Cause != history.ServiceLoss || !strings.Contains(v.Summary, want) {
			t.Errorf("told %v: got %s %q: %s", told, v.Status, v.Cause, v.Summary)
		}
	}
}

// TestAKeyWithoutAnExpiryIsNotLate: its lease was not over when the key was seen, so the sentence does not say that.
func TestAKeyWithoutAnExpiryIsNotLate(t *testing.T) {
	verdicts, err := JudgeFile("testdata/cases/sight-without-end.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range verdicts {
		if v.Checker == leaseValidity.Name && !strings.Contains(strings.Join(v.Story, " "), "without an expiry") {
			t.Errorf("the story is %s", v.Story)
		}
	}
}

// TestWhatToDoFollowsTheStory: the usual remedy of a double grant is an atomic acquire. If the story shows another
// reason, the remedy differs; if it shows none, there is no remedy.
func TestWhatToDoFollowsTheStory(t *testing.T) {
	twoProcesses := func(unseen int64) func(s *script) {
		return func(s *script) {
			s.acquire(1, 0, 1, 400)
			s.busy(3, 300, 301)
			s.acquire(2, 310, 311, 400)
			s.last().Process = 1
			s.Processes, s.Measured = 2, &history.Measured{Unseen: unseen}
		}
	}
	for name, c := range map[string]struct {
		write         func(s *script)
		story, remedy string
	}{
		"one process": {func(s *script) {
			s.acquire(1, 0, 1, 400)
			s.busy(3, 300, 301)
			s.acquire(2, 310, 311, 400)
		}, "its lease is shorter in the servers", keepTheExpiry},
		"two processes": {twoProcesses(0), "its lease is shorter in the servers", keepTheExpiry},
		"two processes, no key": {twoProcesses(20), "w01 is in process 0, w02 in process 1, " +
			"and none of 20 looks into the servers found a key", shareALock},
		"nothing is shown": {func(s *script) {
			s.acquire(1, 0, 1, 400)
			s.acquire(2, 310, 311, 400)
		}, "cause not shown", ""},
		"both at the same time": {func(s *script) {
			s.acquire(1, 0, 2, 400)
			s.acquire(2, 1, 3, 400)
		}, "not atomic", glossary.FindCause(history.DoubleGrant).Remedy},
		"on too few sites": {func(s *script) {
			s.acquire(1, 0, 2, 400)
			b := s.acquire(2, 1, 3, 400)
			s.Sites, s.Measured = 5, &history.Measured{Stream: &history.Stream{
				Minority: []history.Minority{{Token: uint64(b), Sites: 2}}}}
		}, "on 2 of 5 sites", askAMajority},
		"an extension in between": {func(s *script) {
			s.extend(s.acquire(1, 0, 1, 400), 300, 301, 400)
			s.acquire(2, 310, 311, 400)
		}, "look at what it sets", ""},
	} {
		s := newScript()
		c.write(s)
		all := []Verdict{Exclusion.Check(s.prepare(t))}
		Advise(all)
		if v := &all[0]; v.Cause != history.DoubleGrant || !strings.Contains(strings.Join(v.Story, "\n"), c.story) ||
			v.Remedy != c.remedy {
			t.Errorf("%s: got %s %q, what to do %q, want %q\n%s", name, v.Status, v.Cause, v.Remedy, c.remedy,
				strings.Join(v.Story, "\n"))
		}
	}
}

// TestAStreamTellsTheCause: two holders at the same time, or a lease that ended too early, are a failure in any case.
// The server's replication stream only says which command ended the first hold.
func TestAStreamTellsTheCause(t *testing.T) {
	usual := func(cause string) string { return glossary.FindCause(cause).Remedy }
	for _, c := range []struct {
		by                   string
		at                   time.Duration // ms; the second hold is granted at 311
		last                 bool          // no token was written after that
		cause, story, remedy string
		lost, lease          string // cause and story of lease-validity, if the first holder learned of its loss
	}{
		{"DEL", 305, false, history.ForeignRelease, "at 0.305000 s, DEL deleted", usual(history.ForeignRelease),
			history.ForeignRelease, "at 0.305000 s, DEL deleted"},
		{"HDEL", 320, false, history.ForeignRelease, "at 0.320000 s, HDEL deleted", usual(history.ForeignRelease),
			history.ForeignRelease, "at 0.320000 s, HDEL deleted"},
		{"SET", 305, false, history.DoubleGrant, "at 0.305000 s, SET put token", usual(history.DoubleGrant),
			history.PrematureLoss, "no fault"},
		{history.Expiry, 305, false, history.DoubleGrant, "in n1 the lease of", keepTheExpiry,
			history.PrematureLoss, "no fault"},
		{"extended", 305, false, history.FalseExtension, "told at 0.200000 s that it had the lock for longer",
			usual(history.FalseExtension), history.FalseExtension, "it was not made longer"},
		{"DEL", 350, true, history.DoubleGrant, "cause not shown", notShown, history.ForeignRelease,
			"at 0.350000 s, DEL deleted"},
	} {
		for _, learns := range []bool{false, true} {
			s := newScript()
			a := s.acquire(1, 0, 1, 400)
			if c.by == "extended" {
				s.extend(a, 199, 200, 400)
			}
			judge, cause, story, b := Exclusion, c.cause, c.story, history.ID(0)
			if learns {
				judge, cause, story = leaseValidity, c.lost, c.lease
				s.denied(a, 330, 331)
			} else {
				b = s.acquire(2, 310, 311, 400)
			}
			e := history.EarlyEnd{Node: "n1", Token: uint64(a), At: c.at * ms, By: c.by, Next: uint64(b)}
			if c.last {
				e.Next = 0
			}
			if c.by == "extended" {
				e.By, e.Extended = history.Expiry, true
			}
			s.Measured = &history.Measured{Stream: &history.Stream{Early: []history.EarlyEnd{e}}}
			all := []Verdict{judge.Check(s.prepare(t))}
			Advise(all)
			told := strings.Join(all[0].Story, "\n")
			if v := &all[0]; v.Status != Fail || v.Cause != cause || !strings.Contains(told, story) ||
				!learns && v.Remedy != c.remedy {
				t.Errorf("%s at %d, %t: got %s %q, what to do %q, want %q\n%s", c.by, c.at, learns, v.Status, v.Cause,
					v.Remedy, cause, told)
			}
		}
	}
}

// TestAWaiterThatAskedInVainIsNotToldToAsk: the remedy names the key that a release has left.
func TestAWaiterThatAskedInVainIsNotToldToAsk(t *testing.T) {
	for left, remedy := range map[bool]string{true: removeTheKey, false: ""} {
		s := newBuilder()
		s.h.Claims.Expires, s.tick = true, time.Second
		h := s.grant(1, 0, 1, 3)
		s.release(1, h, 2, 3, history.OK)
		s.asking(2, 4, 14)
		if left {
			s.add(history.Op{Kind: history.Sight, Outcome: history.OK, Worker: -1, Call: 8, Return: 8, Token: 7,
				Until: history.Forever})
		}
		s.grant(3, 14, 15, 3)
		all := []Verdict{liveness.Check(s.prepared())}
		Advise(all)
		if v := &all[0]; v.Cause != history.Stuck || v.Remedy != remedy ||
			strings.Contains(strings.Join(v.Story, "\n"), "was still seen on node 0") != left {
			t.Errorf("a key is left %v: got %s %q, what to do %q\n%s", left, v.Status, v.Cause, v.Remedy,
				strings.Join(v.Story, "\n"))
		}
	}
}

// TestASuspectRelease: a double grant names the release that came in between.
func TestASuspectRelease(t *testing.T) {
	for name, c := range map[string]struct {
		write func(s *script)
		story string
	}{
		"a reader has left": {func(s *script) {
			s.Claims.Readers = true
			a := s.acquire(1, 0, 1, 400)
			s.last().Permits = 1
			b := s.acquire(2, 2, 3, 400)
			s.last().Permits = 1
			s.release(b, 20, 21)
			s.acquire(3, 30, 31, 400)
			s.release(a, 100, 101)
		}, "w02 released what it shared with w01 at 0.021000 s, in between"},
		"an inner level was released": {func(s *script) {
			s.Claims.Reentrant = true
			a := s.acquire(1, 0, 1, 400)
			s.last().Value = 1
			s.reenter(a, 2, 3, 400).Value = 2
			s.release(a, 10, 11).Value = 1
			s.acquire(2, 30, 31, 400)
			s.last().Value = 1
			s.release(a, 100, 101)
		}, "w01 released an inner level at 0.011000 s"},
	} {
		s := newScript()
		c.write(s)
		v := Exclusion.Check(s.prepare(t))
		if !strings.Contains(strings.Join(v.Story, "\n"), c.story) || v.Cause != history.DoubleGrant {
			t.Errorf("%s: %s %q: %q", name, v.Status, v.Cause, v.Story)
		}
	}
}
