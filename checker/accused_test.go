package checker

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

// onceAccused are histories of right locks that some checker once failed, or could not judge.
var onceAccused = map[string]func(s *script){
	"renewals that were asked for in vain while messages were late": func(s *script) {
		s.fault(messagesLate, 50, 400)
		askedInVain(s)
	},
	"a renewal that waits for its answer while messages are late": func(s *script) {
		s.Claims.Renews = true
		s.fault(messagesLate, 50, 320)
		a := s.acquire(1, 0, 1, 300)
		s.extend(a, 100, 330, 300)
		s.last().Outcome, s.last().Reason, s.last().Until = history.Failed, history.Lost, 0
	},
	"a holder that heeds its deadline, where pauses are not recorded": func(s *script) {
		s.Heeds = true
		a := s.acquire(1, 0, 1, 300)
		s.acquire(2, 310, 311, 300)
		s.on(a, history.Store, 320, 321).Value = 1
	},
	"renewals that were asked for again and again, and reached no server": func(s *script) {
		askedInVain(s)
		for i := range s.Ops {
			if op := &s.Ops[i]; op.Kind == history.Extend && i%2 == 0 {
				op.Outcome, op.Reason = history.Failed, history.Unreachable
			}
		}
	},
	"a holder that gave up a little before its lease ended, for its server was down": func(s *script) {
		s.fault(serverHangs, 60, 400)
		gaveUpEarly(s, 270)
	},
	"a release that was sent again at once, for its connection broke with the answer": func(s *script) {
		s.fault(answersLost, 15, 40)
		a := s.acquire(1, 10, 11, 300)
		s.denied(a, 20, 25)
		s.release(s.acquire(2, 50, 51, 300), 60, 61)
	},
	"a release that was sent again when the lease was over, for its first answer was lost": func(s *script) {
		s.fault(answersLost, 15, 40)
		a := s.acquire(1, 10, 11, 300)
		s.denied(a, 20, 900)
		s.release(s.acquire(2, 50, 51, 300), 60, 61)
	},
	"a release that was sent again, and refused then by a server that is loading": func(s *script) {
		x := s.release(s.acquire(1, 10, 11, 300), 20, 25)
		x.Outcome, x.Reason = history.Failed, history.Refused
		s.release(s.acquire(2, 50, 51, 300), 60, 61)
	},
	"a reader who became the writer, and whose shared hold is released twice": func(s *script) {
		s.Claims.Readers, s.Claims.Upgrades = true, true
		a := s.acquire(1, 0, 1, 300)
		s.last().Permits = 1
		s.acquire(1, 10, 11, 300)
		s.last().Seen = a
		x := s.release(a, 20, 30)
		x.Outcome, x.Reason = history.Unknown, history.Timeout
		s.release(a, 40, 41)
	},
	"a reader who became the writer and gave the lock back before another writer had it, and lost it": func(s *script) {
		s.Claims.Readers, s.Claims.Upgrades = true, true
		a := s.share(1, 1, 1, 2, 300)
		s.extend(a, 120, 121, 300)
		s.release(s.upgrade(a, 122, 123, 300), 124, 125)
		b := s.acquire(2, 0, 400, 300)
		s.fault(serverDies, 520, 521)
		s.denied(b, 530, 531)
	},
	"a program whose requests waited while the process of its proxy stood still": func(s *script) {
		s.Wire, s.Bounds.Gap = "as seen", 100*ms
		s.release(s.acquire(1, 0, 1, 300), 10, 11)
		s.gap(0, 20, 6000)
		s.last().Value = 1
		s.release(s.acquire(2, 15, 6005, 300), 6010, 6011)
	},
	"a re-entry without an answer, one release and another's grant, without counts": func(s *script) {
		s.Claims.Reentrant = true
		a := s.acquire(1, 0, 1, 300)
		x := s.reenter(a, 10, 20, 300)
		x.Outcome, x.Reason, x.Until = history.Unknown, history.Timeout, 0
		s.release(a, 30, 31)
		b := s.acquire(2, 40, 41, 300)
		s.release(b, 50, 51)
	},
	"the same, and the second release was needed": func(s *script) {
		s.Claims.Reentrant = true
		a := s.acquire(1, 0, 1, 300)
		x := s.reenter(a, 10, 20, 300)
		x.Outcome, x.Reason, x.Until = history.Unknown, history.Timeout, 0
		s.release(a, 30, 31)
		s.release(a, 40, 41)
		b := s.acquire(2, 50, 51, 300)
		s.release(b, 60, 61)
	},
	"a re-entry without an answer that lands after the release": func(s *script) {
		s.Claims.Reentrant, s.Claims.Cleans = true, true
		a := s.acquire(1, 0, 1, 300)
		x := s.reenter(a, 10, 15, 300)
		x.Outcome, x.Reason, x.Until = history.Unknown, history.Timeout, 0
		s.release(a, 16, 17)
		found := s.op(history.Found, -1, 100, 101)
		found.Token, found.Until = uint64(a), 320*ms
	},
	"a re-entry whose fencing token was not written down": func(s *script) {
		s.Claims.Reentrant, s.Claims.Fences = true, true
		a := s.acquire(1, 0, 1, 300)
		s.last().Fence = 7
		s.reenter(a, 10, 11, 300).Value = 2
		s.Ops[0].Value = 1
	},
	"one store, and nothing says whose stores were seen": func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.use(a, 0, 0, 2, 4)
		s.release(a, 6, 7)
		s.final(0, 1, 20)
	},
	"a grant whose answer came late, of a server that forgot it and granted another": func(s *script) {
		s.op(history.Incident, -1, 50, 60)
		a := s.acquire(1, 80, 81, 300)
		b := s.acquire(2, 40, 120, 300)
		s.release(a, 130, 131)
		s.denied(b, 140, 141)
	},
	"a watchdog whose process stood still, long before a fault stopped one": func(s *script) {
		s.Claims.Renews, s.Bounds.Gap = true, 10*ms
		a := s.acquire(1, 0, 1, 200)
		s.extend(a, 60, 61, 200)
		s.fault(processStops, 400, 410)
		s.gap(0, 70, 500)
		s.denied(a, 501, 502)
	},
	"deadlines that count from a moment after the stamp, each time": func(s *script) {
		s.Bounds.Rate, s.Bounds.Round = 0, 0
		for n := range 40 {
			at := 10 * time.Duration(n)
			a := s.acquire(1, at, at+1, 300)
			s.last().Until = (at+300)*ms + time.Microsecond*time.Duration(1+10*(n%3))
			s.release(a, at+7, at+8)
		}
	},
	"a grant of a primary that did not yet know that another one had taken its place": func(s *script) {
		s.op(history.Role, -1, 40, 50).Value = 1
		promoted := s.last().ID
		a := s.acquire(1, 80, 81, 300)
		s.denied(a, 90, 91)
		s.op(history.Role, -1, 120, 130).Seen = promoted
	},
	"an extension after one in doubt, and a server that took another role since": func(s *script) {
		s.op(history.Role, -1, 250, 260)
		extendedTwice(s)
	},
	"a grant whose answer came late, after one that the server had forgotten, and before another": func(s *script) {
		s.op(history.Incident, -1, 40, 41)
		forgottenBefore(s)
	},
	"a watchdog that was told of its grant when little was left of the lease, and whose process was stopped " +
		"then": func(s *script) {
		s.gap(0, 230, 270)
		s.fault(processStops, 230, 270)
		toldLate(s)
	},
	"a watchdog that was told of its grant when there was time to ask once, while messages were late": func(s *script) {
		s.fault(messagesLate, 0, 400)
		a := toldLate(s)
		x := s.extend(a, 190, 290, 300)
		x.Outcome, x.Reason, x.Until = history.Unknown, history.Timeout, 0
	},
	"a waiter whose connection had broken, and that is not woken for long": func(s *script) {
		s.fault(messagesLate, 10, 11)
		asleep(s)
	},
	"a grant after a server had failed, whose process has a clock that is behind": func(s *script) {
		s.Processes, s.Bounds.Slack = 2, ms
		s.op(history.Incident, -1, 50, 51)
		a := s.acquire(1, 0, 1, 300)
		b := s.acquire(2, 48, 49, 300)
		s.last().Process = 1
		s.release(b, 60, 61).Process = 1
		s.denied(a, 70, 71)
	},
	"a waiter that has the place of one before it that died in its try, and finds out at its next try": diesInLine,
	"a try without an answer that lands when a server has hung twice": func(s *script) {
		s.Sites, s.Bounds.Idle, s.Bounds.Recovery = 1, 50*ms, ms
		s.fault(serverHangs, 120, 1420)
		s.fault(serverHangs, 1421, 2720)
		s.release(s.acquire(1, 0, 1, 300), 100, 101)
		x := s.op(history.Acquire, 2, 119, 1119)
		x.Hold, x.Outcome, x.Reason, x.TTL, x.Token = x.ID, history.Unknown, history.Timeout, 300*ms, uint64(x.ID)
		for at := time.Duration(2721); at < 3000; at += 100 {
			s.busy(3, at, at+1)
		}
		s.release(s.acquire(3, 3021, 3022, 300), 3030, 3031)
		s.op(history.End, 3, 2721, 3032)
	},
	"a late try that lands when its worker has been granted the lock twice": func(s *script) {
		s.Claims.Ordered = true
		x := s.busy(2, 0, 5)
		x.Outcome, x.Reason = history.Unknown, history.Timeout
		s.op(history.End, 2, 0, 6)
		passedOver(s)
	},
	"an extension whose server was stopped between its look at the key and the new expiry": func(s *script) {
		a := s.acquire(1, 0, 1, 400)
		s.extend(a, 330, 740, 1200)
		s.release(a, 1728, 1733)
	},
	"a renewal on its way when its process was stopped, until the lease was over": func(s *script) {
		s.Claims.Renews, s.Bounds.Gap = true, 10*ms
		a := s.acquire(1, 0, 1, 300)
		s.last().Until = history.Forever
		s.extend(a, 10, 420, 300).Until = history.Forever
		stoppedUnder(s, a, 12)
	},
	"a driver's lease that was renewed, and given back after three of them": func(s *script) {
		a := renewedUnseen(s, 820)
		x := s.op(history.Sight, -1, 700, 701)
		x.Token, x.Until = uint64(a), 990*ms
		s.release(a, 821, 822)
		s.op(history.End, 1, 0, 823)
	},
	"a driver's lease that may have been renewed until its process was stopped": func(s *script) {
		renewedUnseen(s, 400)
		stoppedUnder(s, s.Ops[0].ID, 260)
	},
	"a driver's lease that may have been renewed until its links were cut": func(s *script) {
		s.fault(history.Effect{Hits: []history.Party{history.Links}, Blocks: true}, 290, 800)
		s.denied(renewedUnseen(s, 820), 581, 820)
	},
}

// renewedUnseen is a lease of a lock that runs in a program of its own and renews. A single extension without an
// answer stands for all renewals of the hold.
func renewedUnseen(s *script, over time.Duration) history.ID {
	s.Claims.Renews, s.Bounds.Gap = true, 10*ms
	s.Measured = &history.Measured{Driver: &history.Driver{}}
	a := s.acquire(1, 0, 1, 300)
	s.last().Until = history.Forever
	x := s.op(history.Extend, 1, 1, over)
	x.Token, x.TTL, x.Outcome, x.Reason = uint64(a), 300*ms, history.Unknown, history.Other
	return a
}

// stoppedUnder stops the process of a hold that renews, until another process has been granted the lock.
func stoppedUnder(s *script, a history.ID, from time.Duration) {
	s.Processes = 2
	s.fault(processStops, from, 410)
	s.gap(0, from, 410)
	b := s.acquire(2, 380, 381, 300)
	s.last().Process = 1
	s.release(b, 382, 383).Process = 1
	s.on(a, history.Lose, 421, 422)
	s.denied(a, 425, 426)
}

// askedInVain is a lease whose renewals were sent again and again; each was given up before its answer came.
func askedInVain(s *script) {
	s.Claims.Renews, s.Bounds.Gap = true, 10*ms
	a := s.acquire(1, 0, 1, 300)
	for at := time.Duration(100); at < 290; at += 45 {
		x := s.extend(a, at, at+15, 300)
		x.Outcome, x.Reason, x.Until = history.Unknown, history.Timeout, 0
	}
	s.denied(a, 310, 311)
}

// gaveUpEarly is a lock that announces a loss before the lease is over. It then answers the release without
// its server.
func gaveUpEarly(s *script, at time.Duration) {
	s.Claims.Renews = true
	a := s.acquire(1, 0, 1, 300)
	s.on(a, history.Lose, at, at)
	s.denied(a, at+1, at+2)
	s.release(s.acquire(2, 450, 451, 300), 460, 461)
}

// stillFailing has histories of wrong locks that must fail: they have no excuse, or only a disturbance that excuses
// nothing. The text want is the cause.
var stillFailing = map[string]struct {
	want  string
	write func(s *script)
}{
	"a grant within a lease that was extended after an extension in doubt": {"false-extension", extendedTwice},
	"a grant whose answer came late, between two others":                   {"double-grant", forgottenBefore},
	"the same, and the server failed when all were over": {"double-grant", func(s *script) {
		s.op(history.Incident, -1, 515, 516)
		forgottenBefore(s)
	}},
	"a watchdog that waited too short for answers, and nothing was wrong": {"renewal-failure", askedInVain},
	"a watchdog whose connection is closed: each renewal fails at once": {"renewal-failure", func(s *script) {
		askedInVain(s)
		for i := range s.Ops {
			if op := &s.Ops[i]; op.Kind == history.Extend {
				op.Outcome, op.Reason, op.Return = history.Failed, history.Unreachable, op.Call+ms
			}
		}
	}},
	"a driver's lease that ran out while messages were late": {"renewal-failure", func(s *script) {
		s.fault(messagesLate, 0, 900)
		s.denied(renewedUnseen(s, 820), 581, 820)
	}},
	"a driver's holder that was told of no loss, though it was stopped for a moment only": {"renewal-failure",
		func(s *script) {
			renewedUnseen(s, 400)
			stoppedUnder(s, s.Ops[0].ID, 400)
		}},
	"a holder that gave up before its lease ended, and its server was there": {"premature-loss", func(s *script) {
		gaveUpEarly(s, 270)
	}},
	"a holder that gave up as soon as its server was down": {"premature-loss", func(s *script) {
		s.fault(serverHangs, 60, 400)
		gaveUpEarly(s, 150)
	}},
	"a holder that gave up before its lease ended, for its server had been down": {"premature-loss", func(s *script) {
		s.fault(serverHangs, 10, 60)
		s.Bounds.Recovery = ms
		gaveUpEarly(s, 270)
	}},
	"a watchdog that had time enough, though it was told late": {"renewal-failure", func(s *script) { toldLate(s) }},
	"the same, while messages were late": {"renewal-failure", func(s *script) {
		s.fault(messagesLate, 0, 400)
		toldLate(s)
	}},
	"the same, and another process was stopped": {"renewal-failure", func(s *script) {
		s.Processes = 2
		s.op(history.Load, 2, 1, 2).Process = 1
		s.gap(1, 230, 270)
		s.fault(processStops, 230, 270)
		toldLate(s)
	}},
	"a watchdog that did not renew, and a server that had failed before it served": {"renewal-failure",
		func(s *script) {
			s.op(history.Incident, -1, 1, 2)
			s.Bounds.Recovery = 500 * ms
			s.Claims.Renews = true
			a := s.acquire(1, 10, 11, 300)
			s.denied(a, 400, 401)
		}},
	"a reader who becomes the writer although its lease was over and another's": {"double-grant", func(s *script) {
		s.Claims.Readers, s.Claims.Upgrades = true, true
		a := s.acquire(1, 0, 1, 100)
		s.last().Permits = 1
		b := s.acquire(2, 150, 151, 100)
		s.release(b, 160, 161)
		s.acquire(1, 200, 201, 100)
		s.last().Seen = a
	}},
	"a grant before a server failed, further than clocks differ": {"double-grant", func(s *script) {
		s.Processes, s.Bounds.Slack = 2, ms
		s.op(history.Incident, -1, 51, 52)
		a := s.acquire(1, 0, 1, 300)
		b := s.acquire(2, 48, 49, 300)
		s.last().Process = 1
		s.release(b, 60, 61).Process = 1
		s.denied(a, 70, 71)
	}},
	"a worker that comes last and is granted the lock first": {"order", func(s *script) {
		s.Claims.Ordered = true
		passedOver(s)
	}},
	"a waiter that is not woken for long": {"stuck", asleep},
	"the same, and it is refused although that place is over": {"stuck", func(s *script) {
		diesInLine(s)
		s.busy(3, 410, 411)
	}},
}

// forgottenBefore has three grants. The second was called after the first, and answered after the third, when its
// own lease was over. To be over before the third grant, the second hold must have begun before the first one was
// given back.
func forgottenBefore(s *script) {
	a := s.acquire(1, 0, 1, 300)
	b := s.acquire(2, 50, 500, 300)
	s.denied(a, 120, 121)
	c := s.acquire(3, 370, 371, 300)
	s.denied(b, 510, 511)
	s.release(c, 520, 521)
}

// toldLate is a lease that had 110 of 300 ms left when its grant was answered, and was not renewed.
func toldLate(s *script) history.ID {
	s.Claims.Renews, s.Bounds.Gap = true, 10*ms
	a := s.acquire(1, 0, 187, 300)
	s.denied(a, 310, 311)
	return a
}

// extendedTwice is a lease with two extensions: the first had no answer, and the second succeeded. Another worker is
// granted the lock at a time when the lease by the first extension may have ended.
func extendedTwice(s *script) {
	a := s.acquire(1, 0, 1, 300)
	x := s.extend(a, 50, 60, 300)
	x.Outcome, x.Reason, x.Until = history.Unknown, history.Timeout, 0
	s.extend(a, 200, 201, 300)
	b := s.acquire(2, 400, 401, 300)
	s.release(b, 402, 403)
	s.denied(a, 480, 481)
}

// passedOver is a waiter that a worker passes over after two visits to the lock.
func passedOver(s *script) {
	for at := time.Duration(10); at < 50; at += 20 {
		a := s.acquire(2, at, at+1, 300)
		s.release(a, at+2, at+3)
		s.op(history.End, 2, at, at+4)
	}
	b := s.acquire(3, 60, 61, 300)
	s.busy(1, 62, 63)
	s.release(b, 70, 71)
	a := s.acquire(2, 72, 73, 300)
	s.busy(1, 74, 75)
	s.release(a, 80, 81)
	c := s.acquire(1, 82, 83, 300)
	s.release(c, 84, 85)
}

// diesInLine is a queue in which a waiter dies in its try. The next waiter is granted the lock when it tries again,
// some time after the dead waiter has lost its place.
func diesInLine(s *script) {
	s.Claims.Ordered, s.Claims.Wakes, s.Bounds.Idle = true, true, 50*ms
	s.fault(processStops, 12, 13)
	s.op(history.Crash, 2, 12, 12)
	s.release(s.acquire(1, 0, 1, 300), 15, 16)
	s.op(history.End, 1, 0, 17)
	x := s.op(history.Acquire, 2, 10, 0)
	x.Hold, x.Outcome, x.TTL, x.Token, x.Return = x.ID, history.Unknown, 300*ms, uint64(x.ID), history.Forever
	for at := time.Duration(20); at < 330; at += 100 {
		s.busy(3, at, at+1)
	}
	s.release(s.acquire(3, 420, 421, 300), 430, 431)
	s.op(history.End, 3, 20, 432)
}

// asleep is a lock that wakes its waiters; one waiter hears late that the lock is free.
func asleep(s *script) {
	s.Claims.Wakes, s.Bounds.Idle, s.Bounds.Gap = true, ms, ms
	a := s.acquire(1, 0, 1, 300)
	s.release(a, 20, 21)
	s.op(history.End, 1, 0, 22)
	s.busy(2, 5, 105)
	b := s.acquire(2, 106, 107, 300)
	s.release(b, 108, 109)
	s.op(history.End, 2, 5, 110)
}

func TestWhatIsNotExcusedStillFails(t *testing.T) {
	t.Parallel()
	for name, c := range stillFailing {
		s := newScript()
		c.write(s)
		verdicts, err := Judge(s.prepare(t))
		if got := failed(verdicts); err != nil || !slices.Contains(got, c.want) {
			t.Errorf("%s: got %q, %v; want %s", name, got, err, c.want)
		}
	}
}

func TestRightLocksAreNotAccused(t *testing.T) {
	t.Parallel()
	for name, write := range onceAccused {
		s := newScript()
		write(s)
		verdicts, err := Judge(s.prepare(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, v := range verdicts {
			if v.Status == Fail {
				t.Errorf("%s: %s: %s: %s\n%s", name, v.Checker, v.Cause, v.Summary, strings.Join(v.Story, "\n"))
			}
		}
	}
}

// TestPartsOfALongPage: a page that is explained in parts shows the same mistakes as the whole page.
func TestPartsOfALongPage(t *testing.T) {
	t.Parallel()
	whole, wrong := 0, 0
	look := func(name string, write func(s *script)) {
		s := newScript()
		write(s)
		c := s.prepare(t)
		for _, holds := range c.byKey {
			if holds, _ = c.split(holds); c.beyondModel() != "" || len(holds) < 3 {
				continue
			}
			in := func(many, beside int) *account {
				if t := newAccount(); c.inParts(t, holds, many, beside) {
					return t
				}
				return nil
			}
			all, parts := in(len(holds), 0), in(2, len(holds))
			switch few := in(2, 1); {
			case all == nil || parts == nil || few == nil:
				t.Errorf("%s: no story", name)
			case len(all.slips) == 0:
				if whole++; len(parts.slips)+len(few.slips) > 0 {
					t.Errorf("%s: parts show %d and %d slips", name, len(parts.slips), len(few.slips))
				}
			default:
				if wrong++; len(parts.slips) != len(all.slips) {
					t.Errorf("%s: %d slips, in parts %d", name, len(all.slips), len(parts.slips))
				}
			}
		}
	}
	for name, write := range onceAccused {
		look(name, write)
	}
	for name, tt := range saved {
		look(name, tt.write)
	}
	if whole < 20 || wrong < 10 {
		t.Errorf("only %d right pages and %d wrong ones", whole, wrong)
	}
}
