package checker

import (
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

// visitEnds ends the visit of a worker that came at the time `from`.
func (s *script) visitEnds(worker int32, from, at time.Duration) { s.op(history.End, worker, from, at) }

// behind lets a worker of a process whose clock is 1.9 s behind hold the lock from 2.1 s to 4.1 s of the other
// process's clock. Another worker is refused meanwhile, and granted the lock at the end.
func behind(s *script, slack time.Duration, dead bool) {
	s.Processes, s.Bounds.Slack, s.Bounds.Gap = 2, slack*ms, 50*ms
	a := s.acquire(1, 200, 201, 2000)
	s.last().Process = 1
	if dead {
		s.op(history.Crash, 1, 202, 202).Process = 1
	} else {
		s.release(a, 2200, 2201).Process = 1
		s.visitEnds(1, 200, 2202)
		s.last().Process = 1
	}
	for at := time.Duration(2150); at < 4100; at += 600 {
		s.busy(2, at, at+1)
	}
	s.release(s.acquire(2, 4150, 4151, 2000), 4155, 4156)
	s.visitEnds(2, 2150, 4157)
}

// waiting has histories in which a worker waits, with the checker that judges them, its verdict and its cause.
var waiting = map[string]struct {
	judge  func(*Case) Verdict
	write  func(*script)
	status Status
	cause  string
}{
	"a holder whose clock is behind": {judgeLiveness, func(s *script) { behind(s, 2000, false) }, Inconclusive, ""},
	"a dead holder whose clock was behind": {judgeLiveness, func(s *script) {
		behind(s, 2000, true)
	}, Inconclusive, ""},
	"a lock that is idle whatever the clocks say": {judgeLiveness, func(s *script) {
		behind(s, 200, false)
	}, Fail, history.Stuck},
	"a message that is late by less than the bound and the slack": {judgeLiveness, func(s *script) {
		s.Processes, s.Bounds.Slack, s.Bounds.Gap, s.Claims.Wakes = 2, 300*ms, 50*ms, true
		s.busy(2, 600, 601)
		s.release(s.acquire(1, 200, 201, 3000), 700, 701).Process = 1
		s.Ops[1].Process = 1
		s.visitEnds(1, 200, 702)
		s.last().Process = 1
		s.release(s.acquire(2, 1900, 1901, 3000), 1905, 1906)
		s.Ops[4].Woken = history.Signal
		s.visitEnds(2, 600, 1907)
	}, Pass, ""},
	"servers that hang, in the time of a clock that is ahead": {judgeLiveness, func(s *script) {
		s.Processes, s.Bounds.Slack, s.Bounds.Gap, s.Bounds.Recovery = 2, 1500*ms, 50*ms, 1000*ms
		s.fault(serverHangs, 500, 3000)
		s.release(s.acquire(1, 1980, 1981, 300), 1990, 1991)
		s.visitEnds(1, 1980, 1992)
		s.busy(2, 1985, 1986)
		s.release(s.acquire(2, 5400, 5401, 300), 5405, 5406)
		s.visitEnds(2, 1985, 5407)
		for i := range s.Ops[2:] {
			s.Ops[i+2].Process = 1
		}
	}, Inconclusive, ""},
	"a silence inside a call, where pauses are not recorded": {judgeLiveness, func(s *script) {
		s.release(s.acquire(1, 0, 2200, 3000), 2210, 2211)
		s.visitEnds(1, 0, 2212)
	}, Inconclusive, ""},
	"the same, of a call that was refused": {judgeLiveness, func(s *script) {
		a := s.acquire(1, 0, 1, 3000)
		s.busy(2, 9, 2209)
		s.release(a, 10, 11)
		s.visitEnds(1, 0, 12)
		s.release(s.acquire(2, 2220, 2221, 3000), 2225, 2226)
		s.visitEnds(2, 9, 2227)
	}, Inconclusive, ""},
	"a silence of the program beside a call that hangs": {judgeCalls, func(s *script) {
		s.Measured = &history.Measured{Hung: []history.Hung{{Worker: 1, CalledOff: 8000 * ms, GivenUp: 8500 * ms}}}
		x := s.release(s.acquire(1, 0, 1, 300), 10, 11)
		x.Outcome, x.Return = history.Unknown, history.Forever
		s.release(s.acquire(2, 8100, 8101, 300), 8105, 8106)
	}, Inconclusive, ""},
	"a call that hangs, where the program was never silent for long": {judgeCalls, func(s *script) {
		s.Measured = &history.Measured{Hung: []history.Hung{{Worker: 1, CalledOff: 8000 * ms, GivenUp: 8500 * ms}}}
		x := s.release(s.acquire(1, 0, 1, 300), 10, 11)
		x.Outcome, x.Return = history.Unknown, history.Forever
		for at := time.Duration(400); at < 8000; at += 200 {
			s.release(s.acquire(2, at, at+1, 300), at+5, at+6)
		}
	}, Fail, history.HungCall},
	"a message that went to a waiter that gives up": {judgeLiveness, func(s *script) {
		s.Claims.Wakes, s.Bounds.Gap = true, 50*ms
		a := s.acquire(3, 0, 1, 3000)
		s.busy(1, 10, 11)
		s.busy(2, 11, 12)
		s.release(a, 20, 21)
		s.visitEnds(2, 11, 20)
		s.visitEnds(3, 0, 22)
		s.release(s.acquire(1, 3020, 3021, 3000), 3025, 3026)
		s.visitEnds(1, 10, 3027)
	}, Pass, ""},
	"a sleeper that nothing wakes when the lease of a dead holder is over": {judgeLiveness, func(s *script) {
		s.Claims.Wakes, s.Bounds.Gap = true, 50*ms
		s.acquire(1, 0, 1, 3000)
		s.busy(2, 5, 6)
		s.op(history.Crash, 1, 10, 10)
		s.release(s.acquire(2, 6900, 6901, 3000), 6905, 6906)
		s.visitEnds(2, 5, 6907)
	}, Fail, history.LostWakeup},
	"a try without an answer that takes effect late": {judgeLiveness, func(s *script) {
		landsLate(s, 4400)
	}, Pass, ""},
	"a try without an answer, and longer than it can be late": {judgeLiveness, func(s *script) {
		landsLate(s, 5600)
	}, Fail, history.Stuck},
	"a waiter that was passed over by a worker of its machine": {judgeFairness, func(s *script) {
		s.Processes, s.Bounds.Slack = 3, 100*ms
		s.Bounds.Doubts = []history.Doubt{{Own: ms}, {Own: ms}, {Machine: 1, Own: ms, Offset: 50 * ms}}
		passedInLine(s, func() *history.Op { return s.busy(1, 60, 61) })
		for i := range s.Ops {
			s.Ops[i].Process = int16(one(s.Ops[i].Worker == 2))
		}
	}, Fail, history.OutOfOrder},
	"a waiter that was passed over, and then had no answer": {judgeFairness, func(s *script) {
		passedInLine(s, func() *history.Op {
			x := s.busy(1, 60, 61)
			x.Outcome, x.Reason = history.Unknown, history.Timeout
			return x
		})
	}, Fail, history.OutOfOrder},
	"a waiter that was passed over, and then had an error": {judgeFairness, func(s *script) {
		passedInLine(s, func() *history.Op {
			x := s.busy(1, 60, 61)
			x.Reason = history.Other
			return x
		})
	}, Fail, history.OutOfOrder},
	"a dead holder in a record that was cut off": {judgeLiveness, func(s *script) {
		s.Partial, s.Bounds.Gap = "killed", 50*ms
		s.acquire(1, 0, 1, 300)
		s.op(history.Crash, 1, 10, 10)
		for at := time.Duration(20); at < 6000; at += 200 {
			s.busy(2, at, at+1)
		}
		s.visitEnds(3, 0, 0)
	}, Fail, history.Deadlock},
	"a sleeper while all permits are free": {judgeLiveness, permits(1, true, func(s *script) {
		a := s.share(1, 1, 0, 1, 3000)
		s.refuses(2, 1, 10, 11)
		s.release(a, 20, 21)
		s.visitEnds(1, 0, 22)
		s.release(s.share(2, 1, 6000, 6001, 3000), 6005, 6006)
		s.visitEnds(2, 10, 6007)
	}), Fail, history.LostWakeup},
	"one call that waits while all permits are free": {judgeLiveness, permits(1, false, func(s *script) {
		s.release(s.share(1, 1, 0, 5000, 3000), 5010, 5011)
		s.visitEnds(1, 0, 5012)
	}), Fail, history.Stuck},
	"a large request that is refused while all permits are free": {judgeLiveness, permits(2, false, func(s *script) {
		s.release(s.share(1, 1, 0, 1, 3000), 5, 6)
		s.visitEnds(1, 0, 7)
		for at := time.Duration(10); at < 10000; at += 300 {
			s.refuses(2, 2, at, at+1)
		}
	}), Fail, history.Deadlock},
	"a large request that is refused while one permit is taken": {judgeLiveness, permits(2, false, func(s *script) {
		for at := time.Duration(0); at < 10000; at += 300 {
			s.release(s.share(1, 1, at, at+1, 3000), at+290, at+291)
			s.visitEnds(1, at, at+292)
			s.refuses(2, 2, at+10, at+11)
		}
	}), Pass, ""},
}

// permits writes a history of a semaphore.
func permits(n int, wakes bool, write func(*script)) func(*script) {
	return func(s *script) {
		s.Claims = history.Claims{Expires: true, Owned: true, Permits: n, Wakes: wakes}
		s.Bounds.Gap = 50 * ms
		write(s)
	}
}

// passedInLine has two waiters in the queue of a lock that claims an order. The later one is granted the lock first,
// and the first one asks again.
func passedInLine(s *script, again func() *history.Op) {
	s.Claims.Ordered = true
	a := s.acquire(3, 0, 1, 3000)
	s.busy(1, 10, 11).TTL = 3000 * ms
	s.busy(2, 30, 31).TTL = 3000 * ms
	s.release(a, 40, 41)
	s.visitEnds(3, 0, 42)
	s.release(s.acquire(2, 50, 51, 3000), 55, 56)
	s.visitEnds(2, 30, 57)
	again().TTL = 3000 * ms
	s.busy(1, 70, 71).TTL = 3000 * ms
	s.visitEnds(1, 10, 80)
}

// landsLate has a try that gets no answer within 100 ms, a visit of another worker after it, and then refusals until a
// grant.
func landsLate(s *script, granted time.Duration) {
	s.Bounds.Gap = 50 * ms
	x := s.busy(1, 0, 101)
	x.Outcome, x.Reason, x.TTL = history.Unknown, history.Timeout, 3000*ms
	s.visitEnds(1, 0, 102)
	s.release(s.acquire(2, 1200, 1201, 3000), 1205, 1206)
	s.visitEnds(2, 1200, 1207)
	for at := time.Duration(1400); at < granted; at += 300 {
		s.busy(2, at, at+1)
	}
	s.release(s.acquire(2, granted, granted+1, 3000), granted+5, granted+6)
	s.visitEnds(2, 1400, granted+7)
}

// TestTheStoryOfAFreeLock: it says that a try was granted late, and claims no lease where the lock has none.
func TestTheStoryOfAFreeLock(t *testing.T) {
	for want, write := range map[string]func(*script){
		"no worker can have held the lock from 0.000000 s to 1.200000 s, and w01 asked for it at 0.000000 s and was " +
			"granted it only at 2.200000 s": func(s *script) {
			s.release(s.acquire(1, 0, 2200, 3000), 2210, 2211)
		},
		"no worker relied on the lock from 0.030000 s to 3.931000 s, and w02 asked for it in vain at": func(s *script) {
			s.Claims.Expires = false
			s.acquire(1, 0, 1, 0)
			s.last().Until = history.Forever
			s.op(history.Crash, 1, 10, 10)
			for at := time.Duration(30); at < 4000; at += 300 {
				s.busy(2, at, at+1)
			}
		},
	} {
		s := newScript()
		s.Bounds.Gap = 50 * ms
		write(s)
		s.visitEnds(3, 0, 0)
		if v := judgeLiveness(s.prepare(t)); v.Status != Fail || !strings.Contains(v.Story[0], want) {
			t.Errorf("got %v %q: %s; want %s", v.Status, v.Cause, v.Summary, want)
		}
	}
}

// TestWaiting: each history has the verdict that is right for it.
func TestWaiting(t *testing.T) {
	for name, tt := range waiting {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			tt.write(s)
			v := tt.judge(s.prepare(t))
			if v.Status != tt.status || v.Cause != tt.cause {
				t.Errorf("got %v %q: %s; want %v %q", v.Status, v.Cause, v.Summary, tt.status, tt.cause)
			}
		})
	}
}
