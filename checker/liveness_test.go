package checker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hammerlock/history"
)

// found adds a key that was found after the run.
func (s *builder) found(at int, token uint64, until time.Duration) {
	s.add(history.Op{Kind: history.Found, Outcome: history.OK, Worker: -1, Call: dur(at), Return: dur(at),
		Token: token, Until: until})
}

// marked gives the last operation a token.
func (s *builder) marked(token uint64) { s.h.Ops[len(s.h.Ops)-1].Token = token }

// asking lets a worker try in vain, once a tick.
func (s *builder) asking(w int32, from, to int) {
	for at := from; at < to; at++ {
		s.refuse(w, dur(at), dur(at+1))
	}
	s.done(w, dur(from), dur(to))
}

// asksInVain lets a worker ask for a free lock, and fail for another reason than a holder.
func (s *builder) asksInVain(why history.Reason) {
	h := s.grant(1, 0, 1, 3)
	s.release(1, h, 2, 3, history.OK)
	for at := dur(4); at < 40; at++ {
		s.add(history.Op{Kind: history.Acquire, Outcome: history.Failed, Reason: why, Worker: 2, Call: at,
			Return: at + 1})
	}
	s.done(2, 4, 40)
	s.h.Bounds.Idle = 3 * time.Second
}

// connects lets a worker wait in vain for a connection when a lock was given back.
func (s *builder) connects(session bool) {
	h := s.grant(1, 0, 1, 3)
	s.release(1, h, 2, 3, history.OK)
	s.add(history.Op{Kind: history.Acquire, Outcome: history.Failed, Reason: history.Unreachable, Worker: 2,
		Call: 4, Return: 40})
	s.done(2, 4, 40)
	s.h.Session, s.h.Bounds.Gap = session, time.Millisecond
}

// sleepsForALease has waiters that messages wake. At the moment `at`, a worker is refused and the lock is given back.
// Nevertheless the worker sleeps until the lease would have ended. The argument came is the outcome of another page's
// release, which returns at 2.
func (s *builder) sleepsForALease(came history.Outcome, at time.Duration) {
	other := s.add(history.Op{Kind: history.Acquire, Outcome: history.OK, Worker: 3, Key: 1, TTL: 10, Until: 10,
		Woken: history.Signal, Return: 1})
	s.add(history.Op{Kind: history.Release, Outcome: came, Hold: other, Worker: 3, Key: 1, Call: 1, Return: 2})
	h := s.grant(1, at-2, at-1, 10)
	s.refuse(2, at-1, at)
	s.release(1, h, at, at+1, history.OK)
	s.done(1, at-2, at+1)
	h = s.add(history.Op{Kind: history.Acquire, Outcome: history.OK, Worker: 2, Call: at + 10, Return: at + 11, TTL: 10,
		Until: at + 20, Woken: history.LeaseEnd})
	s.release(2, h, at+11, at+12, history.OK)
	s.done(2, at-1, at+13)
	s.h.Bounds.Gap = time.Millisecond
}

// sleeper lets a refused worker sleep until the end of a lease that was given back before. No messages wake waiters.
func (s *builder) sleeper() {
	h := s.grant(1, 0, 1, 3)
	s.refuse(2, 1, 2)
	s.release(1, h, 2, 3, history.OK)
	s.done(1, 0, 3)
	h = s.add(history.Op{Kind: history.Acquire, Outcome: history.OK, Worker: 2, Call: 5, Return: 6, TTL: 3, Until: 8})
	s.release(2, h, 7, 8, history.OK)
	s.done(2, 1, 9)
	s.h.Bounds.Gap = time.Millisecond
}

var livenessCases = map[string]struct {
	write       func(*builder)
	status      Status
	cause, word string
}{
	"nobody": {func(*builder) {}, Inconclusive, "", "no worker waited"},
	"passed on": {func(s *builder) {
		h := s.grant(1, 0, 1, 5)
		s.release(1, h, 4, 5, history.OK)
		s.refuse(2, 2, 3)
		h = s.grant(2, 5, 6, 5)
		s.release(2, h, 7, 8, history.OK)
	}, Pass, "", "longest dead time"},
	"a crash costs a lease": {func(s *builder) {
		s.grant(1, 0, 1, 8)
		s.add(history.Op{Kind: history.Crash, Worker: 1, Call: 2, Return: 2})
		s.asking(2, 2, 9)
		s.grant(2, 9, 10, 8)
	}, Pass, "", "longest dead time 8.00 s"},
	"nobody can have it": {func(s *builder) {
		h := s.grant(1, 0, 1, 3)
		s.release(1, h, 2, 3, history.OK)
		s.asking(2, 4, 14)
		s.grant(3, 14, 15, 3)
	}, Fail, "stuck", "asked for it in vain"},
	"nobody gets it any more": {func(s *builder) {
		h := s.grant(1, 0, 1, 3)
		s.release(1, h, 2, 3, history.OK)
		s.asking(2, 4, 20)
	}, Fail, "deadlock", ""},
	"a session that lasts longer than its lease": {func(s *builder) {
		s.givesBackInVain(5 * time.Second)
	}, Pass, "", ""},
	"a lease that lasts longer than it may": {func(s *builder) {
		s.givesBackInVain(0)
	}, Fail, "stuck", "asked for it in vain"},
	"nobody can ask, for a reason that is the client's": {func(s *builder) {
		s.asksInVain(history.Other)
	}, Fail, "deadlock", "asked for it in vain"},
	"the servers refuse whoever asks": {func(s *builder) {
		s.asksInVain(history.Refused)
	}, Pass, "", ""},
	"a connection that took long to make": {func(s *builder) {
		s.h.Session = true
		h := s.grant(1, 0, 1, 3)
		s.release(1, h, 2, 3, history.OK)
		s.add(history.Op{Kind: history.Acquire, Outcome: history.Failed, Reason: history.Unreachable, Worker: 2,
			Call: 3, Return: 6})
		h = s.grant(2, 6, 7, 3)
		s.release(2, h, 8, 9, history.OK)
		s.done(2, 3, 9)
	}, Pass, "", ""},
	"nobody gets a connection, of a pool": {func(s *builder) {
		s.connects(false)
	}, Fail, "deadlock", "asked for it in vain"},
	"nobody gets a connection, of a session": {func(s *builder) {
		s.connects(true)
	}, Pass, "", ""},
	"a lost wake-up": {func(s *builder) {
		s.h.Bounds.Gap = time.Millisecond
		h := s.grant(1, 0, 1, 3)
		s.refuse(2, 1, 30)
		s.release(1, h, 2, 3, history.OK)
		s.done(2, 1, 31)
	}, Fail, "deadlock", ""},
	"a waiter that slept between two tries": {func(s *builder) {
		h := s.grant(1, 0, 1, 3)
		s.refuse(2, 1, 2)
		s.release(1, h, 2, 3, history.OK)
		s.done(1, 0, 3)
		h = s.add(history.Op{Kind: history.Acquire, Outcome: history.OK, Worker: 2, Call: 20, Return: 21,
			TTL: 3, Until: 23})
		s.release(2, h, 21, 22, history.OK)
		s.done(2, 1, 23)
		s.h.Bounds.Gap = time.Millisecond
	}, Fail, "stuck", "did not ask again"},
	"a sleeper that a lease wakes where releases are told": {func(s *builder) {
		s.sleepsForALease(history.OK, 2)
	}, Fail, "lost-wakeup", "was not woken"},
	"a sleeper that a lease wakes where a holder was late": {func(s *builder) {
		s.h.Faults = []history.Injection{{Effect: history.Effect{Hits: []history.Party{history.Holders}}}}
		s.add(history.Op{Kind: history.Fault, Worker: -1, Key: -1, Call: 0, Return: 1})
		s.sleepsForALease(history.OK, 2)
	}, Fail, "lost-wakeup", "was not woken"},
	"a sleeper that a lease wakes, for a message may be lost": {func(s *builder) {
		s.sleepsForALease(history.Unknown, 2)
		s.asking(3, 40, 41)
		h := s.grant(3, 41, 41, 3)
		s.release(3, h, 42, 42, history.OK)
	}, Pass, "", ""},
	"a sleeper that a lease wakes, long after a message may have been lost": {func(s *builder) {
		s.sleepsForALease(history.Unknown, 40)
	}, Fail, "lost-wakeup", "was not woken"},
	"a sleeper that a lease wakes, long after links were cut": {func(s *builder) {
		s.h.Faults = []history.Injection{{Effect: history.Effect{Hits: []history.Party{history.Links}}}}
		s.add(history.Op{Kind: history.Fault, Worker: -1, Key: -1, Call: 0, Return: 1})
		s.add(history.Op{Kind: history.Heal, Worker: -1, Key: -1, Call: 3, Return: 4})
		s.sleepsForALease(history.OK, 40)
	}, Fail, "lost-wakeup", "was not woken"},
	"a lease that is renewed after it was given back": {func(s *builder) {
		h := s.grant(1, 0, 1, 3)
		s.release(1, h, 2, 3, history.Unknown)
		for at := dur(4); at < 20; at += 2 {
			s.add(history.Op{Kind: history.Extend, Outcome: history.OK, Hold: h, Worker: 1, TTL: 3, Call: at,
				Return: at + 1, Until: at + 3})
		}
		s.asking(2, 4, 20)
	}, Fail, "deadlock", ""},
	"a lease that is renewed before it is given back": {func(s *builder) {
		h := s.grant(1, 0, 1, 3)
		for at := dur(2); at < 18; at += 2 {
			s.add(history.Op{Kind: history.Extend, Outcome: history.OK, Hold: h, Worker: 1, TTL: 3, Call: at,
				Return: at + 1, Until: at + 3})
		}
		s.asking(2, 4, 18)
		s.release(1, h, 18, 18, history.OK)
		h = s.grant(2, 18, 19, 3)
		s.release(2, h, 20, 20, history.OK)
		s.asking(3, 40, 41)
		h = s.grant(3, 41, 41, 3)
		s.release(3, h, 42, 42, history.OK)
	}, Pass, "", ""},
	"a sleeper that a lease wakes": {(*builder).sleeper, Pass, "", "longest dead time"},
	"a sleeper that a lease wakes, and one who is refused while he is granted the lock": {func(s *builder) {
		s.sleeper()
		s.refuse(3, 5, 6)
		s.done(3, 5, 6)
	}, Pass, "", "longest dead time"},
	"a sleeper that a lease wakes, of a lock that claims to wake him": {func(s *builder) {
		s.sleeper()
		s.h.Claims.Wakes, s.h.Bounds.Idle = true, time.Millisecond
	}, Fail, "lost-wakeup", "was not woken"},
	"a sleeper while others go on elsewhere": {func(s *builder) {
		h := s.grant(1, 0, 1, 3)
		s.refuse(2, 1, 2)
		s.release(1, h, 2, 3, history.OK)
		s.done(1, 0, 3)
		for at := dur(4); at < 20; at++ {
			s.add(history.Op{Kind: history.End, Worker: 3, Key: 1, Call: at, Return: at + 1})
		}
		h = s.add(history.Op{Kind: history.Acquire, Outcome: history.OK, Worker: 2, Call: 20, Return: 21,
			TTL: 3, Until: 23})
		s.release(2, h, 21, 22, history.OK)
		s.done(2, 1, 23)
	}, Fail, "stuck", ""},
	"a machine that is known to have stood still": {func(s *builder) {
		h := s.grant(1, 0, 1, 3)
		s.refuse(2, 1, 2)
		s.release(1, h, 2, 3, history.OK)
		s.done(1, 0, 3)
		s.add(history.Op{Kind: history.Gap, Worker: -1, Key: -1, Call: 3, Return: 19})
		h = s.add(history.Op{Kind: history.Acquire, Outcome: history.OK, Worker: 2, Call: 20, Return: 21,
			TTL: 3, Until: 23})
		s.release(2, h, 21, 22, history.OK)
		s.done(2, 1, 23)
		s.h.Bounds.Gap = time.Millisecond
		s.asking(3, 40, 41)
		h = s.grant(3, 41, 41, 3)
		s.release(3, h, 42, 42, history.OK)
	}, Pass, "", ""},
	"faults all the time": {func(s *builder) {
		s.h.Faults = []history.Injection{{Effect: serverHangs, To: 1}}
		h := s.grant(1, 0, 1, 3)
		s.add(history.Op{Kind: history.Fault, Worker: -1, Key: -1, Call: 0, Return: 1})
		s.refuse(2, 1, 2)
		s.release(1, h, 2, 3, history.OK)
		s.grant(2, 4, 5, 3)
	}, Inconclusive, "", "faults left no time"},
	"a fault explains it": {func(s *builder) {
		s.h.Faults = make([]history.Injection, 1)
		h := s.grant(1, 0, 1, 3)
		s.release(1, h, 2, 3, history.OK)
		s.add(history.Op{Kind: history.Fault, Worker: -1, Key: -1, Call: 2, Return: 3})
		s.asking(2, 4, 11)
		h = s.grant(3, 11, 12, 3)
		s.release(3, h, 15, 16, history.OK)
	}, Pass, "", "a fault explains"},
	"a minority that hangs excuses nobody": {func(s *builder) {
		s.h.Faults = []history.Injection{{Effect: minorityHangs}}
		h := s.grant(1, 0, 1, 3)
		s.release(1, h, 2, 3, history.OK)
		s.add(history.Op{Kind: history.Fault, Worker: -1, Key: -1, Call: 2, Return: 3})
		s.asking(2, 4, 14)
		s.grant(3, 14, 15, 3)
	}, Fail, "stuck", ""},
	"tries that take longer than a lease explain no more than one": {func(s *builder) {
		s.h.Sites = 5
		h := s.grant(1, 0, 1, 3)
		s.release(1, h, 2, 3, history.OK)
		for call := time.Duration(4); call < 34; call += 10 {
			s.refuse(2, call, call+10)
			s.h.Ops[len(s.h.Ops)-1].Reason = history.Quorum
		}
		s.done(2, 4, 34)
	}, Fail, "deadlock", "asked for it in vain"},
	"tries that outlast their lease and end unknown keep the lock for no worker": {func(s *builder) {
		s.h.Sites = 5
		h := s.grant(1, 0, 1, 3)
		s.release(1, h, 2, 3, history.OK)
		for call := time.Duration(4); call < 34; call += 10 {
			s.add(history.Op{Kind: history.Acquire, Outcome: history.Unknown, Worker: 2, TTL: 3, Call: call,
				Return: call + 10})
		}
		s.done(2, 4, 34)
	}, Fail, "deadlock", "asked for it in vain"},
	"tries within their lease that end unknown may keep it": {func(s *builder) {
		s.h.Sites = 5
		h := s.grant(1, 0, 1, 3)
		s.release(1, h, 2, 3, history.OK)
		for call := time.Duration(4); call < 34; call += 2 {
			s.add(history.Op{Kind: history.Acquire, Outcome: history.Unknown, Worker: 2, TTL: 3, Call: call,
				Return: call + 2})
		}
		s.done(2, 4, 34)
	}, Pass, "", ""},
	"a machine that slept": {func(s *builder) {
		h := s.grant(1, 0, 1, 3)
		s.release(1, h, 2, 3, history.OK)
		s.refuse(2, 2, 3)
		s.grant(2, 40, 41, 3)
		s.done(2, 2, 42)
	}, Inconclusive, "", "no call or answer of process 0"},
	"a key for ever": {func(s *builder) {
		s.h.Claims.Cleans = true
		s.grant(1, 0, 1, 3)
		s.found(50, 7, history.Forever)
	}, Fail, "leak", "never expires"},
	"the token of a hold for ever": {func(s *builder) {
		s.h.Claims.Cleans = true
		s.grant(1, 0, 1, 3)
		s.marked(7)
		s.found(50, 7, history.Forever)
	}, Fail, "leak", "never expires"},
	"a record for ever that says of no hold": {func(s *builder) {
		s.grant(1, 0, 1, 3)
		s.found(50, 7, history.Forever)
	}, Inconclusive, "", "too short"},
	"a lease too long": {func(s *builder) {
		s.h.Claims.Cleans = true
		s.grant(1, 0, 1, 3)
		s.found(50, 7, 60)
	}, Fail, "ttl-too-long", ""},
	"a lease too long after a clock was set": {func(s *builder) {
		s.h.Faults = []history.Injection{
			{Name: "f", Effect: history.Effect{Hits: []history.Party{history.Clocks}, Loses: history.LosesTime},
				From: 22, To: 30},
		}
		s.add(history.Op{Kind: history.Fault, Worker: -1, Key: -1, Call: 22, Return: 23})
		s.add(history.Op{Kind: history.Heal, Worker: -1, Key: -1, Call: 29, Return: 30})
		s.grant(1, 20, 21, 3)
		s.marked(7)
		s.done(1, 20, 22)
		s.found(50, 7, 60)
	}, Pass, "", ""},
	"a lease too long long after a clock was set": {func(s *builder) {
		s.h.Claims.Cleans = true
		s.h.Faults = []history.Injection{
			{Name: "f", Effect: history.Effect{Hits: []history.Party{history.Clocks}, Loses: history.LosesTime},
				From: 2, To: 10},
		}
		s.add(history.Op{Kind: history.Fault, Worker: -1, Key: -1, Call: 2, Return: 3})
		s.add(history.Op{Kind: history.Heal, Worker: -1, Key: -1, Call: 9, Return: 10})
		s.grant(1, 20, 21, 3)
		s.marked(7)
		s.done(1, 20, 22)
		s.found(50, 7, 60)
	}, Fail, "ttl-too-long", ""},
	"a key that was given back": {func(s *builder) {
		s.h.Claims.Cleans = true
		h := s.grant(1, 0, 1, 3)
		s.marked(7)
		s.release(1, h, 2, 3, history.OK)
		s.found(3, 7, 5)
	}, Fail, "leak", "is released"},
	"a key that was given back around a fault": {func(s *builder) {
		h := s.grant(1, 0, 1, 3)
		s.marked(7)
		s.h.Faults = make([]history.Injection, 1)
		s.add(history.Op{Kind: history.Fault, Worker: -1, Key: -1, Call: 2, Return: 3})
		s.release(1, h, 2, 3, history.OK)
		s.found(3, 7, 5)
		s.asking(2, 30, 31)
		s.grant(3, 31, 31, 3)
	}, Pass, "", ""},
	"a key on one site of five": {func(s *builder) {
		s.h.Sites = 5
		h := s.grant(1, 0, 1, 3)
		s.marked(7)
		s.release(1, h, 2, 3, history.OK)
		s.found(3, 7, 5)
	}, Pass, "", ""},
	"a key on one site of five that answered at once": {func(s *builder) {
		s.h.Sites, s.h.Claims.Cleans, s.tick = 5, true, time.Millisecond
		h := s.grant(1, 0, 1, 300)
		s.marked(7)
		s.release(1, h, 2, 3, history.OK)
		s.found(3, 7, 300)
	}, Fail, "leftover", "is released"},
	"a quorum that was not reached leaves a key": {func(s *builder) {
		s.h.Sites, s.h.Claims.Cleans, s.tick = 5, true, time.Millisecond
		s.grant(1, 0, 1, 300)
		s.refuse(2, 0, 2)
		s.marked(7)
		s.h.Ops[len(s.h.Ops)-1].Reason = history.Quorum
		s.found(3, 7, 300)
	}, Fail, "leftover", "was not granted the lock"},
	"refused, and there": {func(s *builder) {
		s.h.Claims.Cleans = true
		s.grant(2, 0, 1, 3)
		s.refuse(1, 0, 1)
		s.marked(7)
		s.found(1, 7, 3)
	}, Fail, "phantom", "was not granted the lock"},
}

// TestUnseen: what could not be observed is not judged, and the verdict has the reason.
func TestUnseen(t *testing.T) {
	s := newBuilder()
	s.h.Unseen = map[string]string{history.Calls: "no call was seen"}
	verdicts, err := Judge(s.prepared())
	i := slices.IndexFunc(verdicts, func(v Verdict) bool { return v.Checker == history.Calls })
	if v := verdicts[i]; err != nil || v.Status != NotJudged || v.Summary != "no call was seen" {
		t.Errorf("%s: %s; %v", v.Status, v.Summary, err)
	}
}

// TestALostProcessMayHaveGoneOn: a machine that was lost may still take the lock, so nothing later is a dead lock.
func TestALostProcessMayHaveGoneOn(t *testing.T) {
	for lost, want := range map[string]Status{"": Fail, "a machine was lost": Inconclusive, "it died": Fail} {
		s := newBuilder()
		s.h.Claims.Expires, s.tick, s.h.Processes = true, time.Second, 2
		s.refuse(9, 0, 1)
		s.h.Ops[len(s.h.Ops)-1].Process = 1
		if lost == "it died" {
			s.add(history.Op{Kind: history.Crash, Outcome: history.OK, Key: -1, Worker: 9, Call: 1, Return: 1})
			s.h.Ops[len(s.h.Ops)-1].Process = 1
		}
		livenessCases["nobody can have it"].write(s)
		s.h.Partial = lost
		if v := judgeLiveness(s.prepared()); v.Status != want {
			t.Errorf("%q: got %s, want %s: %s", lost, v.Status, want, v.Summary)
		}
	}
}

// TestWhatARunIsNotAbout: if there was too little time to judge, the verdict is inconclusive only in a run that is
// about liveness, and otherwise not judged. A violation always counts.
func TestWhatARunIsNotAbout(t *testing.T) {
	for name, tt := range map[string]struct {
		write func(*builder)
		aside bool
		want  Status
	}{
		"no worker waited":       {func(*builder) {}, false, Inconclusive},
		"nobody waited, aside":   {func(*builder) {}, true, NotJudged},
		"nobody can have it":     {livenessCases["nobody can have it"].write, false, Fail},
		"the same, aside":        {livenessCases["nobody can have it"].write, true, Fail},
		"it is passed on, aside": {livenessCases["passed on"].write, true, Pass},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBuilder()
			s.h.Claims.Expires, s.tick = true, time.Second
			if tt.aside {
				s.h.NotAbout = []string{history.Liveness}
			}
			tt.write(s)
			verdicts, err := Judge(s.prepared())
			i := slices.IndexFunc(verdicts, func(v Verdict) bool { return v.Checker == history.Liveness })
			if err != nil || verdicts[i].Status != tt.want {
				t.Errorf("%v, want %v; %v", verdicts[i].Status, tt.want, err)
			}
		})
	}
}

// TestNobodysAcquire: an Acquire without a worker, as in a history from another program, is judged like others.
func TestNobodysAcquire(t *testing.T) {
	s := newBuilder()
	s.h.Workers, s.h.Processes, s.h.Keys = 2, 1, 1
	s.grant(1, 0, 1, 3)
	s.add(history.Op{
		Kind: history.Acquire, Outcome: history.Failed, Reason: history.Busy, Worker: -1, Call: 1, Return: 2,
	})
	if _, err := JudgeHistory(&s.h); err != nil {
		t.Error(err)
	}
}

// givesBackInVain has a release without an answer, and the next grant six seconds later.
func (s *builder) givesBackInVain(linger time.Duration) {
	s.h.Bounds.Linger = linger
	h := s.grant(1, 0, 1, 3)
	s.release(1, h, 2, 3, history.Unknown)
	s.asking(2, 4, 9)
	s.grant(2, 9, 10, 3)
}

func TestLiveness(t *testing.T) {
	for name, tt := range livenessCases {
		t.Run(name, func(t *testing.T) {
			s := newBuilder()
			s.h.Claims.Expires = true
			s.tick = time.Second
			tt.write(s)
			expect(t, judgeLiveness(s.prepared()), tt.status, tt.cause, tt.word)
		})
	}
}

// drawLives lets workers wait, hold, forget and die; then keys are looked for.
func drawLives(r *rand.Rand) *builder {
	s := newBuilder()
	s.h.Claims.Expires, s.h.Claims.Cleans = true, true
	s.tick = time.Second
	s.h.Bounds.Gap = time.Duration(r.IntN(2))
	token := uint64(0)
	s.done(9, 0, 0) // with an End in the history, tries without an End still belong to a visit
	for w := range int32(1 + r.IntN(3)) {
		now := r.IntN(6)
		for range 1 + r.IntN(3) {
			key, begin := int32(r.IntN(5)/4), now
			for range r.IntN(9) {
				token++
				s.add(history.Op{Kind: history.Acquire, Worker: w, Key: key, Call: dur(now),
					Return: dur(now + 1), TTL: 3,
					Outcome: history.Failed, Reason: history.Busy, Token: token})
				now += 1 + r.IntN(2)
			}
			if r.IntN(5) == 0 {
				now += r.IntN(12) // it sleeps, if it has tried
			}
			op := history.Op{Kind: history.Acquire, Worker: w, Key: key, Call: dur(now), Return: dur(now + 1), TTL: 3,
				Token:   token + 1,
				Outcome: history.OK, Until: dur(now + 3)}
			token++
			if r.IntN(6) == 0 {
				op.Outcome, op.Until = history.Unknown, 0
			}
			hold := s.add(op)
			now += 1 + r.IntN(3)
			if op.Outcome == history.OK && r.IntN(5) == 0 {
				s.add(history.Op{Kind: history.Extend, Outcome: history.Outcome(r.IntN(2)), Worker: w,
					Key: key, Hold: hold,
					Call: dur(now), Return: dur(now + 1), TTL: 3, Until: dur(now + 3)})
				now += 1 + r.IntN(2)
			}
			if op.Outcome == history.OK && r.IntN(8) == 0 {
				s.add(history.Op{Kind: history.Crash, Worker: w, Key: -1, Call: dur(now), Return: dur(now)})
				break
			}
			if r.IntN(4) > 0 {
				s.release(w, hold, dur(now), dur(now+1), history.Outcome(r.IntN(3)))
				rel := &s.h.Ops[len(s.h.Ops)-1]
				if rel.Key = key; rel.Outcome == history.Failed {
					rel.Reason = history.Lost
				}
				now++
			}
			s.add(history.Op{Kind: history.End, Worker: w, Key: key, Call: dur(begin), Return: dur(now)})
			now += 1 + r.IntN(3)
		}
	}
	s.happens(r, int(token))
	return s
}

// happens adds a fault, and a key that was found.
func (s *builder) happens(r *rand.Rand, tokens int) {
	if r.IntN(3) == 0 {
		at := r.IntN(20)
		e := []history.Effect{{}, serverHangs, failsOver, minorityHangs, workerLate, processStops, messagesLate}
		s.h.Faults = []history.Injection{{Effect: e[r.IntN(len(e))]}}
		s.h.Claims.Ordered = r.IntN(2) == 0
		s.add(history.Op{Kind: history.Fault, Worker: -1, Key: -1, Call: dur(at), Return: dur(at + 1 + r.IntN(8))})
	}
	if r.IntN(3) == 0 {
		until := 40*time.Second + time.Duration(r.IntN(6))*time.Second
		if r.IntN(8) == 0 {
			until = history.Forever
		}
		s.h.Sites = 1 + 2*r.IntN(2)
		s.add(history.Op{
			Kind: history.Found, Outcome: history.OK, Worker: -1, Call: 40, Return: 40,
			Token: 1 + uint64(r.IntN(tokens+1)),
		})
		s.h.Ops[len(s.h.Ops)-1].Until = until
	}
}

// span returns the longest series of seconds for which something is true, and the number of all such seconds.
func span(is []bool) (longest, all int) {
	row := 0
	for _, b := range is {
		if row++; !b {
			row = 0
		} else {
			all++
		}
		longest = max(longest, row)
	}
	return longest, all
}

const seconds = 80

// given is the last second in which a command without an answer takes effect, if nothing disturbs it.
func given(op *history.Op) time.Duration {
	if op.Outcome != history.Unknown {
		return 0
	}
	return op.Return + time.Second
}

// held marks the seconds in which a holder of a key believed in its hold, and those in which a server may have kept it.
func held(c *Case, key int32) (believed, kept []bool) {
	believed, kept = make([]bool, seconds), make([]bool, seconds)
	for i := range c.Ops {
		a := &c.Ops[i]
		if a.Kind != history.Acquire || a.Outcome == history.Failed || a.Key != key {
			continue
		}
		until, proof, crash := a.Until, a.Return, history.Forever
		// a command without an answer may take effect when the servers answer again
		late := func(op *history.Op) time.Duration {
			for _, f := range c.Ops {
				if f.Kind == history.Fault && op.Outcome == history.Unknown && f.Call <= op.Return &&
					f.Return >= op.Call &&
					(c.Faults[0].Effect.Blocks || c.Faults[0].Effect.Hits == nil) {
					return max(op.Return, f.Return)
				}
			}
			return 0
		}
		landed := late(a)
		landed = max(landed, given(a))
		back := history.Op{Call: history.Forever, Return: history.Forever}
		for j := range c.Ops {
			op := &c.Ops[j]
			switch {
			case op.Kind == history.Extend && op.Hold == a.ID:
				proof, landed = op.Return, max(landed, late(op), given(op))
				if op.Outcome != history.Failed {
					until = op.Until
				}
			case op.Kind == history.Crash && op.Worker == a.Worker && op.Call >= a.Call:
				crash = op.Call
			case op.Kind == history.Release && op.Hold == a.ID:
				back = *op
			}
		}
		from, end := a.Call, max(min(proof, max(crash, proof-time.Second)), landed)+3*time.Second
		if a.Outcome == history.OK {
			from = max(a.Call, a.Return-time.Second)
		}
		if back.Outcome == history.OK || back.Outcome == history.Failed && a.Outcome == history.OK {
			end = min(end, back.Return)
		}
		for u := range time.Duration(seconds) {
			t := u * time.Second
			if a.Outcome == history.OK && a.Return <= t && t < min(until, crash, back.Call) {
				believed[u] = true
			}
			if from <= t && t < end {
				kept[u] = true
			}
		}
	}
	return believed, kept
}

// explanations returns what may explain a dead time: slow calls, leases, and the seconds in which a fault is felt.
func explanations(c *Case) (bound, ttl time.Duration, grants map[int32]time.Duration, felt []bool,
	explains func(from, to time.Duration) bool) {
	slowest, try := time.Duration(0), time.Duration(0)
	grants = map[int32]time.Duration{}
	felt = make([]bool, seconds)
	for _, op := range c.Ops {
		ttl = max(ttl, op.TTL)
		if op.Kind == history.Acquire && op.Outcome == history.OK {
			grants[op.Key] = max(grants[op.Key], op.Return)
		}
	}
	fault := period{-1, -1}
	for _, op := range c.Ops {
		if op.Kind == history.Fault {
			grace := map[string]time.Duration{ // TTLs and recovery
				"": ttl + 5*time.Second, "hangs": 5 * time.Second, "fails over": ttl + 5*time.Second,
				"stops": ttl, "late": ttl,
			}
			if c.Sites < 2 && !c.Claims.Ordered {
				grace["stops"], grace["late"] = 0, 0 // a call without an answer counts as a hold that may exist
			}
			name := ""
			switch e := c.Faults[0].Effect; {
			case e.Spares, e.Hits != nil && e.Hits[0] == history.Holders:
				continue
			case e.Hits == nil:
			case e.Hits[0] == history.Clients:
				name = "stops"
			case e.Hits[0] == history.Links:
				name = "late"
			case e.Loses != "":
				name = "fails over"
			default:
				name = "hangs"
				if c.Sites > 1 {
					name = "fails over" // leases on a minority
				}
			}
			fault = period{op.Call, op.Return + grace[name]}
			for u := range time.Duration(seconds) {
				felt[u] = felt[u] || fault.from <= u*time.Second && u*time.Second < fault.to
			}
		}
	}
	explains = func(from, to time.Duration) bool { return fault.to >= 0 && from <= fault.to && to >= fault.from }
	for _, op := range c.Ops {
		if (op.Kind == history.Release || op.Kind == history.Extend || c.Session && op.Reason == history.Unreachable) &&
			!explains(op.Call, op.Return) {
			slowest = max(slowest, op.Return-op.Call)
		} else if op.Kind == history.Acquire && op.Reason == history.Quorum && !explains(op.Call, op.Return) {
			try = max(try, op.Return-op.Call)
		}
	}
	if ttl > 0 && c.Claims.Expires {
		slowest, try = min(slowest, ttl), min(try, ttl)
	}
	return slowest + collisions*try + time.Second, ttl, grants, felt, explains
}

// everySecond looks at every second of every page, and at every found key.
func everySecond(c *Case) string {
	bound, ttl, grants, felt, explains := explanations(c)
	stuck, deadlock, longest, all := 0, 0, 0, 0
	visits := readTries(c)
	for key := range int32(c.keys) {
		believed, kept := held(c, key)
		dead, idle := make([]bool, seconds), make([]bool, seconds)
		for u := range time.Duration(seconds) {
			for i := range visits {
				if v := &visits[i]; v.ops[0].Key == key && v.ops[0].Call <= u*time.Second && u*time.Second < v.stop {
					dead[u], idle[u] = !believed[u], !kept[u]
				}
			}
		}
		n, sum := span(dead)
		longest, all = max(longest, n), all+sum
		for u := 0; u < seconds; u++ {
			from := u
			for ; u < seconds && idle[u] && !felt[u]; u++ {
			}
			a, b := time.Duration(from)*time.Second, time.Duration(u)*time.Second
			proven, asked := false, b
			for i := range c.Ops {
				if op := &c.Ops[i]; op.Kind == history.Acquire && op.Outcome == history.OK && op.Key == key &&
					op.Return > a && op.Call < b {
					asked = min(asked, op.Call)
				}
			}
			for i := range c.Ops {
				op := &c.Ops[i]
				if b-a <= bound || op.Kind != history.Acquire || op.Key != key {
					continue
				}
				refused := op.Outcome == history.Failed && op.Call >= a+bound/2 && op.Return <= asked
				hung := op.Call <= a+bound/2 && op.Return-silent(c, a, min(op.Return, b)) >= a+bound
				proven = proven || refused || hung
			}
			slept := b-a > bound && sleeps(c, visits, key, a, b) > bound+ttl
			if b-a <= bound || !proven && !slept {
				continue
			}
			if a >= grants[key] && b-a > 2*ttl {
				deadlock++
			} else {
				stuck++
			}
		}
	}
	kind := leaked(c, ttl, explains)
	return fmt.Sprintf("%v %d %d %d %d %s", stuck+deadlock > 0 || kind != "", stuck, deadlock, longest, all, kind)
}

// sleeps returns the longest time between two tries of one waiter for a page, between the times a and b. If pauses of
// the machine were not recorded, the longest silence of all workers is subtracted.
func sleeps(c *Case, visits []tries, key int32, a, b time.Duration) (most time.Duration) {
	for i := range visits {
		v := &visits[i]
		for n, op := range v.ops {
			next := v.stop
			if n+1 < len(v.ops) {
				next = v.ops[n+1].Call
			}
			if op.Key == key && op.Outcome == history.Failed {
				from, to := max(op.Return, a), min(next, b)
				most = max(most, to-from-silent(c, from, to))
			}
		}
	}
	return most
}

// silent is the longest silence of all workers between two moments; 0 if pauses are recorded.
func silent(c *Case, a, b time.Duration) (longest time.Duration) {
	if c.Bounds.Gap > 0 {
		return 0
	}
	last := a
	for t := a; t <= b; t += time.Second {
		heard := t == b
		for i := range c.Ops {
			heard = heard || c.Ops[i].Worker >= 0 && (c.Ops[i].Call == t || c.Ops[i].Return == t)
		}
		if heard {
			longest, last = max(longest, t-last), t
		}
	}
	return longest
}

// leaked classifies the only key that was found.
func leaked(c *Case, ttl time.Duration, explains func(from, to time.Duration) bool) string {
	for _, f := range c.Ops {
		if f.Kind != history.Found {
			continue
		}
		if f.Until == history.Forever {
			return "leak"
		}
		if f.Until-f.Return > ttl {
			if stretches(c, f) {
				return ""
			}
			return "ttl-too-long"
		}
		for _, a := range c.Ops {
			if a.Kind != history.Acquire || a.Token != f.Token || f.Until <= f.Call || c.Sites > 1 ||
				explains(a.Call, a.Return) {
				continue
			}
			if a.Outcome == history.Failed && a.Return <= f.Call && !forgets(c, a.Call, f.Call) {
				return "phantom"
			}
			if slices.ContainsFunc(c.Ops, func(x history.Op) bool {
				return x.Kind == history.Extend && x.Hold == a.ID && explains(x.Call, x.Return)
			}) {
				continue
			}
			for _, r := range c.Ops {
				if r.Kind == history.Release && r.Hold == a.ID && r.Outcome == history.OK && r.Return <= f.Call &&
					!explains(r.Call, r.Return) && !forgets(c, max(r.Call, a.Call), f.Call) {
					return "leak"
				}
			}
		}
	}
	return ""
}

// stretches reports whether a fault may have set a clock between two times: the Acquire of the found key, and the
// moment when the key was found.
func stretches(c *Case, found history.Op) bool {
	from := time.Duration(0)
	for _, a := range c.Ops {
		asked := a.Outcome != history.Failed || a.Reason == history.Busy || a.Reason == history.Quorum
		if a.Kind == history.Acquire && asked && a.Token == found.Token && a.Token != 0 {
			from = a.Call
		}
	}
	began, ended := history.Forever, history.Forever
	for _, f := range c.Ops {
		switch f.Kind {
		case history.Fault:
			began, ended = f.Call, max(f.Return, c.Faults[0].To)
		case history.Heal:
			ended = f.Return
		}
	}
	return began <= found.Return && ended >= from &&
		(!c.Faults[0].Effect.Known() || c.Faults[0].Effect.Loses == history.LosesTime)
}

// forgets reports whether the fault can have made servers forget something between two moments.
func forgets(c *Case, from, to time.Duration) bool {
	return slices.ContainsFunc(c.Ops, func(f history.Op) bool {
		return f.Kind == history.Fault && c.Faults[0].Effect.BreaksPromises() && f.Call <= to && f.Return >= from
	})
}

func TestLivenessAgainstEverySecond(t *testing.T) {
	p := property{
		histories: 100_000, draw: drawLives, oracle: everySecond,
		check: func(c *Case) string {
			v, l := weighLiveness(c)
			kind := ""
			for _, cause := range []string{"phantom", "leak", "ttl-too-long"} {
				if v.Causes[cause] > 0 {
					kind = cause
				}
			}
			return fmt.Sprintf("%v %d %d %d %d %s", v.Status == Fail, v.Causes["stuck"], v.Causes["deadlock"],
				l.dead/time.Second, l.deadAll/time.Second, kind)
		},
	}
	p.run(t)
}
