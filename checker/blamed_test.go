package checker

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/model"
)

// TestALateReleaseIsNotBlamedForWhatAServerForgot: a release that was called after its lease had ended cannot have
// ended a later hold that was extended since. A release that was called within its lease is right, however late its
// answer is. If a server forgets something afterwards, the server is to blame.
func TestALateReleaseIsNotBlamedForWhatAServerForgot(t *testing.T) {
	for _, tt := range []struct {
		called   time.Duration
		extended bool
		cause    string
	}{{400, true, "service-loss"}, {400, false, "foreign-release"}, {100, false, "service-loss"}} {
		s := newScript()
		s.Sites = 1
		s.release(s.acquire(1, 0, 1, 300), tt.called, 700)
		b := s.acquire(2, 650, 651, 300)
		if tt.extended {
			s.extend(b, 720, 721, 300)
		}
		s.fault(serverDies, 800, 801)
		s.release(s.acquire(1, 810, 811, 300), 900, 901)
		if v := Exclusion.Check(s.prepare(t)); v.Status != Fail || v.Cause != tt.cause {
			t.Errorf("called at %d, extended %t: got %s %q: %s, want %s", tt.called, tt.extended, v.Status, v.Cause,
				v.Summary, tt.cause)
		}
	}
}

// TestALossIsNotPrematureAfterAReleaseOfAnEarlierHold: an earlier holder's release succeeded, so it freed the loser's
// lock, even if it was called within its own lease. A release that was answered "not yours" freed nothing.
func TestALossIsNotPrematureAfterAReleaseOfAnEarlierHold(t *testing.T) {
	for name, tt := range map[string]struct {
		release func(s *script, a history.ID)
		cause   string
	}{
		"with success":          {func(s *script, a history.ID) { s.release(a, 110, 111) }, "foreign-release"},
		"refused":               {func(s *script, a history.ID) { s.denied(a, 110, 111) }, "premature-loss"},
		"after the loss":        {func(s *script, a history.ID) { s.release(a, 210, 211) }, "premature-loss"},
		"as the other one asks": {func(s *script, a history.ID) { s.release(a, 100, 111) }, "premature-loss"},
		"as the other one asks, of a lock that is known for that": {func(s *script, a history.ID) {
			s.release(a, 100, 111)
			late := s.acquire(3, 1000, 1001, 300)
			s.acquire(4, 1400, 1401, 300)
			s.release(late, 1410, 1411)
			s.acquire(5, 1420, 1421, 300)
		}, "premature-loss"}, // without that release, the second worker would not have been granted the lock
	} {
		s := newScript()
		s.Sites = 1
		a := s.acquire(1, 0, 1, 800)
		b := s.acquire(2, 100, 101, 800)
		tt.release(s, a)
		s.denied(b, 200, 201)
		if v := leaseValidity.Check(s.prepare(t)); v.Status != Fail || v.Cause != tt.cause {
			t.Errorf("%s: got %s %q: %s, want %s", name, v.Status, v.Cause, v.Summary, tt.cause)
		}
	}
}

// blamed are histories in which two workers are granted the lock at the same time, with the cause; empty = no blame.
var blamed = map[string]struct {
	write func(s *script)
	cause string
}{
	"a hold is given back twice, the second time it frees another's": {func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.release(a, 10, 11)
		b := s.acquire(2, 20, 21, 300)
		s.release(a, 30, 31)
		s.acquire(3, 40, 41, 300)
		s.release(b, 50, 51)
	}, "foreign-release"},
	"the second time is told that there is nothing": {func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.release(a, 10, 11)
		b := s.acquire(2, 20, 21, 300)
		s.denied(a, 30, 31)
		s.release(b, 35, 36)
		s.acquire(3, 40, 41, 300)
	}, ""},
	"the grant that was freed is answered last": {func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.release(a, 10, 11)
		s.acquire(2, 12, 40, 300)
		s.release(a, 30, 31)
		s.acquire(3, 35, 36, 300)
	}, "foreign-release"},
	"a clock jumps after a grant, and another's answer comes late": {func(s *script) {
		s.release(s.acquire(1, 0, 1, 300), 120, 531)
		s.fault(history.Effect{Hits: []history.Party{history.Clocks}, Loses: history.LosesTime}, 555, 556)
		a, b := s.acquire(1, 532, 533, 300), s.acquire(2, 145, 557, 300)
		s.denied(a, 651, 652)
		s.extend(b, 676, 677, 300)
		s.release(b, 678, 679)
	}, "service-loss"},
	"no answer to an acquire, and its release comes while another has the lock": {func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.release(unanswered(s, 2, 5, 15), 16, 17)
		s.acquire(3, 20, 21, 300)
		s.release(a, 30, 31)
	}, "foreign-release"},
	"the same, while the other one asks": {func(s *script) {
		s.release(lateRelease(s, 24), 30, 31)
	}, "foreign-release"},
	"the same, and the other one hears that its hold is lost": {func(s *script) {
		s.denied(lateRelease(s, 24), 30, 31)
	}, "foreign-release"},
	"the same, and nobody is granted the lock meanwhile": {func(s *script) {
		s.release(lateRelease(s, 40), 30, 31)
	}, ""},
	"a release comes while the next one asks, others are refused for long after it, and then one is granted the lock " +
		"too early": {func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.release(a, 10, 14)
		s.acquire(2, 11, 13, 300)
		s.busy(4, 20, 21)
		s.busy(4, 240, 241)
		s.acquire(3, 250, 251, 300)
	}, "double-grant"},
	"the same, and nobody asks in between": {func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.release(a, 10, 14)
		s.acquire(2, 11, 13, 300)
		s.acquire(3, 250, 251, 300)
	}, "double-grant"}, // the release was needed for the second grant
	"the same, and a third may have been granted the lock, but would have it still": {func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.release(a, 10, 14)
		s.acquire(2, 11, 13, 300)
		unanswered(s, 5, 15, 50)
		s.busy(4, 60, 61)
		s.acquire(3, 250, 251, 300)
	}, "double-grant"},
	"the same, and who is refused may be refused for the sake of a third": {func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.release(a, 10, 14)
		s.acquire(2, 11, 13, 300)
		b := s.acquire(5, 15, 16, 300)
		s.busy(4, 20, 21)
		s.release(b, 240, 241)
		s.acquire(3, 250, 251, 300)
	}, "double-grant"},
	"a release that was called in time is answered late, and the hold that it may have ended was extended " +
		"since": {func(s *script) {
		s.extend(answeredLate(s), 410, 411, 300)
	}, "foreign-release"},
	"the same, and the extension heard that the hold was lost": {func(s *script) {
		x := s.extend(answeredLate(s), 410, 411, 300)
		x.Outcome, x.Reason, x.Until = history.Failed, history.Lost, 0
	}, "foreign-release"},
}

// TestAReleaseIsBlamedThatCanHaveFreedTheLock: a double grant is blamed on a release that had nothing to give back and
// may have come between the grants. A release that only gave its own hold back is not blamed.
func TestAReleaseIsBlamedThatCanHaveFreedTheLock(t *testing.T) {
	for name, tt := range blamed {
		s := newScript()
		tt.write(s)
		v := Exclusion.Check(s.prepare(t))
		if v.Cause != tt.cause || (v.Status == Fail) != (tt.cause != "") {
			t.Errorf("%s: got %s %q, want %q: %s\n%s", name, v.Status, v.Cause, tt.cause, v.Summary,
				strings.Join(v.Story, "\n"))
		}
	}
}

// answeredLate writes a release that was called within its lease and answered later, during another worker's hold. A
// third grant follows the answer. It returns the second hold.
func answeredLate(s *script) history.ID {
	s.release(s.acquire(1, 0, 1, 300), 200, 400)
	second := s.acquire(2, 310, 311, 300)
	s.release(s.acquire(3, 401, 402, 300), 450, 451)
	return second
}

// TestWhatFollowsIsCountedUnderItsIncident: a second worker is granted the lock beside the holder, for no known
// reason, and releases it. So a third worker can be granted the lock while the first one still holds it. This counts
// as one incident.
func TestWhatFollowsIsCountedUnderItsIncident(t *testing.T) {
	s := newScript()
	a := s.acquire(1, 0, 1, 300)
	s.release(s.acquire(2, 10, 11, 300), 20, 21)
	s.release(s.acquire(3, 30, 31, 300), 50, 51)
	s.denied(a, 60, 61)
	v := Exclusion.Check(s.prepare(t))
	if v.Cause != "double-grant" || v.Violations != 2 || !strings.Contains(v.Summary, "2 times after 1 incident") {
		t.Errorf("got %v: %s", v.Causes, v.Summary)
	}
}

// unanswered is a try without an answer.
func unanswered(s *script, worker int32, call, ret time.Duration) history.ID {
	a := s.acquire(worker, call, ret, 300)
	s.last().Outcome, s.last().Reason, s.last().Until = history.Unknown, history.Timeout, 0
	return a
}

// lateRelease has a hold that is granted during another worker's release. The Acquire of the released hold had no
// answer. A third worker is granted the lock at the given time.
func lateRelease(s *script, again time.Duration) history.ID {
	s.release(unanswered(s, 1, 0, 10), 11, 22)
	a := s.acquire(2, 12, 13, 300)
	s.acquire(3, again, again+1, 300)
	return a
}

// TestAStoryTellsWhoAFenceRefused: a service forgot a grant, and the counter rejects the holder's load or store.
func TestAStoryTellsWhoAFenceRefused(t *testing.T) {
	for _, kind := range []history.Kind{history.Load, history.Store} {
		s := newScript()
		s.Sites, s.Fenced = 1, true
		first := s.acquire(1, 0, 1, 1000)
		s.fault(serverDies, 10, 11)
		s.acquire(2, 100, 101, 1000)
		refused := s.on(first, kind, 200, 201)
		refused.Outcome, refused.Reason = history.Failed, history.Fenced
		v := Exclusion.Check(s.prepare(t))
		if story := strings.Join(v.Story, "\n"); v.Cause != "service-loss" ||
			!strings.Contains(story, "w01 was refused by the counter") {
			t.Errorf("%v: got %q\n%s", kind, v.Cause, story)
		}
	}
}

// TestAReleaseThatSaysYesFreesNothing: a lock answers every release with success, as redsync 4.0.3 does. Such a
// release has freed no other hold if the lease was over when the next worker was granted the lock.
func TestAReleaseThatSaysYesFreesNothing(t *testing.T) {
	s := newScript()
	late := s.acquire(1, 0, 1, 400)
	victim := s.acquire(2, 420, 421, 400)
	s.release(late, 540, 541)
	s.acquire(1, 830, 831, 400)
	s.release(victim, 940, 941)
	if v := Exclusion.Check(s.prepare(t)); v.Status != Fail || v.Cause != history.FalseRelease {
		t.Errorf("got %s %q: %s %q, want %s", v.Status, v.Cause, v.Summary, v.Story, history.FalseRelease)
	}
}

// TestAReleaseThatDoesNotSayWhoseItWasProvesNoGrant: a lock compares tokens, deletes the key if they are equal, and
// answers "ok" in any case. Such an answer does not prove that a try without an answer, or a refused one, was granted.
func TestAReleaseThatDoesNotSayWhoseItWasProvesNoGrant(t *testing.T) {
	for owned, want := range map[bool]Status{false: Pass, true: Fail} {
		for _, outcome := range []history.Outcome{history.Unknown, history.Failed} {
			s := newScript()
			s.Claims.Owned, s.Sites = owned, 1
			s.acquire(1, 0, 1, 400)
			try := s.busy(2, 10, 11)
			try.Outcome = outcome
			s.release(try.Hold, 12, 13)
			s.acquire(3, 420, 421, 400)
			if v := Exclusion.Check(s.prepare(t)); v.Status != want {
				t.Errorf("owned %t, %v: got %s: %q %q, want %s", owned, outcome, v.Status, v.Summary, v.Story, want)
			}
		}
	}
}

// TestAStoryNamesWhatCanHaveDoubledAGrant: between two grants an extension succeeded; or the second grant has a token
// that had been granted before, as from a client that remembers its grant.
func TestAStoryNamesWhatCanHaveDoubledAGrant(t *testing.T) {
	for want, write := range map[string]func(s *script){
		"the extension by w01, which succeeded at 0.301000 s, may have made the lease shorter": func(s *script) {
			s.extend(s.acquire(1, 0, 1, 400), 300, 301, 400)
			s.acquire(2, 310, 311, 400)
		},
		"token 0401 had been granted to w02 before, at 0.001000 s": func(s *script) {
			again := s.acquire(2, 0, 1, 100)
			s.acquire(1, 200, 202, 400)
			s.acquire(2, 201, 203, 400)
			s.last().Token = uint64(again)
		},
		"both have token 0301: the servers cannot tell the two apart": func(s *script) {
			a := s.acquire(1, 0, 5, 400)
			s.acquire(2, 1, 6, 400)
			s.last().Token = uint64(a)
		},
		"the try by w03 that was called at 0.010000 s had no answer: look whether what the lock sends after that " +
			"ends what w01 had": func(s *script) {
			s.acquire(1, 0, 1, 400)
			s.Processes, s.Bounds.Slack = 2, 0
			op := s.busy(3, 10, 60)
			op.Outcome, op.Reason, op.Process = history.Unknown, history.Timeout, 1
			s.acquire(2, 70, 71, 400)
		},
		"w03 was still refused at 0.301000 s, so the lock was kept until then": func(s *script) {
			s.acquire(1, 0, 1, 400)
			s.busy(3, 300, 301)
			s.acquire(2, 310, 311, 400)
		},
		"1 call of the process of w02 had no answer by then": func(s *script) {
			s.acquire(1, 0, 1, 400)
			s.busy(2, 10, 110).Outcome = history.Unknown
			s.acquire(2, 310, 311, 400)
		},
	} {
		s := newScript()
		write(s)
		v := Exclusion.Check(s.prepare(t))
		if story := strings.Join(v.Story, "\n"); v.Cause != history.DoubleGrant || !strings.Contains(story, want) {
			t.Errorf("got %s %q, want %q\n%s", v.Status, v.Cause, want, story)
		}
	}
}

// TestAnExtensionWithoutAnswerMayHaveGivenTheLockBack, as in npm redlock 4: the story names this extension, and does
// not blame the earlier one, which made the lease longer.
func TestAnExtensionWithoutAnswerMayHaveGivenTheLockBack(t *testing.T) {
	for lost, want := range map[bool]string{false: history.FalseExtension, true: history.DoubleGrant} {
		s := newScript()
		a := s.acquire(1, 0, 1, 400)
		s.extend(a, 300, 301, 400)
		if lost {
			op := s.extend(a, 450, 460, 400)
			op.Outcome, op.Reason, op.Until = history.Unknown, history.Dropped, 0
		}
		s.acquire(2, 470, 471, 400)
		v := Exclusion.Check(s.prepare(t))
		told := strings.Contains(strings.Join(v.Story, "\n"), "the extension by w01 that was called at 0.450000 s "+
			"had no answer, and may have given the lock back")
		if v.Status != Fail || v.Cause != want || told != lost {
			t.Errorf("lost %t: got %s %q: %q, want %s", lost, v.Status, v.Cause, v.Story, want)
		}
	}
}

// TestAMistakeThatKeepsALockLetsNoSecondWorkerIn: a key without an expiry, or one that a release has left, is no cause
// of an overlap, for it only keeps others out.
func TestAMistakeThatKeepsALockLetsNoSecondWorkerIn(t *testing.T) {
	for i := range model.Deviations {
		d := &model.Deviations[i]
		story := account{slips: []slip{{Step: model.Step{Deviation: d}, hold: 0, against: -1}},
			ofHold: map[int32][]int{0: {0}}}
		keeps := slices.Contains([]string{history.TTLTooLong, history.Leak, history.FalseRefusal, history.Phantom},
			d.Name)
		if n := story.of(pair{0, 1}); (n < 0) != keeps {
			t.Errorf("%s: slip %d explains that two are in", d.Name, n)
		}
	}
}
