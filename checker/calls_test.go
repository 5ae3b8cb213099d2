package checker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

// hangs is a history in which a worker calls release at 20 ms and never returns, while another worker goes on.
func hangs(h history.Hung) func(*script) {
	return func(s *script) {
		h.Worker = 1
		s.Measured = &history.Measured{Hung: []history.Hung{h}}
		s.Bounds.Recovery, s.Bounds.Gap = 100*ms, 50*ms
		a := s.acquire(1, 10, 12, 300)
		op := s.release(a, 20, 21)
		op.Return, op.Outcome = history.Forever, history.Unknown
		if h.GivenUp == 0 {
			op.Return, op.Reason = h.CalledOff+ms, history.Canceled
		}
		s.release(s.acquire(2, 400, 402, 300), 500, 501)
	}
}

func with(first func(*script), more ...func(*script)) func(*script) {
	return func(s *script) {
		first(s)
		for _, m := range more {
			m(s)
		}
	}
}

func fault(e history.Effect, from, to time.Duration) func(*script) {
	return func(s *script) { s.fault(e, from, to) }
}

func driven(s *script) { s.Measured.Driver = &history.Driver{} }

var (
	givenUp = hangs(history.Hung{
		CalledOff: 3000 * ms, GivenUp: 8000 * ms, Text: "goroutine 7 [chan send]:\nlock.Unlock",
	})
	givenUpSoon   = hangs(history.Hung{CalledOff: 3000 * ms, GivenUp: 3500 * ms})
	cameBack      = hangs(history.Hung{CalledOff: 3000 * ms})
	calledOffSoon = hangs(history.Hung{CalledOff: 1000 * ms})
)

var callCases = map[string]struct {
	write  func(*script)
	status Status
	cause  string
}{
	"all return": {handOffs, Pass, ""},
	"nothing":    {func(*script) {}, Inconclusive, ""},
	"no operation": {func(s *script) {
		s.Measured = &history.Measured{Hung: []history.Hung{{CalledOff: ms}}}
	}, Inconclusive, ""},
	"given up":                               {givenUp, Fail, history.HungCall},
	"it returned when it was called off":     {cameBack, Fail, history.HungCall},
	"it was called off soon":                 {calledOffSoon, Inconclusive, ""},
	"a server hung before":                   {with(givenUpSoon, fault(serverHangs, 15, 300)), Fail, history.HungCall},
	"a server hung until the end":            {with(givenUpSoon, fault(serverHangs, 15, 2500)), Inconclusive, ""},
	"a server hung, and the context ended":   {with(givenUp, fault(serverHangs, 15, 2500)), Fail, history.HungCall},
	"a server hung that came back too late":  {with(givenUpSoon, fault(serverHangs, 15, 2990)), Inconclusive, ""},
	"a minority hung until the end":          {with(givenUpSoon, fault(minorityHangs, 15, 2500)), Inconclusive, ""},
	"a holder was late":                      {with(givenUpSoon, fault(workerLate, 15, 2500)), Fail, history.HungCall},
	"a message is lost, and the context not": {with(givenUpSoon, fault(messagesLate, 15, 100)), Inconclusive, ""},
	"a message is lost, and the context ended, and it heeds that": {with(cameBack, fault(messagesLate, 15, 100)),
		Inconclusive, ""},
	"a message is lost, and it does not heed that": {with(givenUp, fault(messagesLate, 15, 100)), Fail,
		history.HungCall},
	"messages were lost later": {with(cameBack, fault(messagesLate, 3100, 3200)), Fail, history.HungCall},
	"a driver":                 {with(givenUp, driven), Fail, history.HungCall},
	"a driver has no context":  {with(givenUp, driven, fault(messagesLate, 15, 100)), Inconclusive, ""},
	"its process was paused":   {with(givenUpSoon, func(s *script) { s.gap(0, 600, 2800) }), Inconclusive, ""},
	"another process was paused": {with(givenUpSoon, func(s *script) {
		s.Processes = 2
		s.op(history.End, 3, 1, 2).Process = 1
		s.gap(1, 600, 2800)
	}), Fail, history.HungCall},
	"a renewal in the background counts for nothing": {func(s *script) {
		givenUp(s)
		op := &s.Ops[1]
		op.Return, op.Outcome = 30*ms, history.OK
		s.Ops = append(s.Ops, history.Op{ID: history.ID(uint64(40)<<40 | 1), Worker: 1, Kind: history.Extend,
			Call: 15 * ms, Return: history.Forever})
		s.op(history.End, 1, 1, 2999)
		s.Measured.Hung = nil
	}, Pass, ""},
	"a wait for a message that does not end": {func(s *script) {
		givenUp(s)
		op := &s.Ops[1]
		op.Return, op.Outcome = 30*ms, history.OK
	}, Fail, history.HungCall},
	"the counter": {func(s *script) {
		givenUp(s)
		s.Ops[1].Kind = history.Store
	}, Pass, ""},
	"a driver that leaves unanswered what is called off": {func(s *script) {
		cameBack(s)
		driven(s)
		s.Measured.Hung = nil
	}, Fail, history.HungCall},
	"a driver that left unanswered for a second what was called off": {func(s *script) {
		calledOffSoon(s)
		driven(s)
		s.Measured.Hung = nil
	}, Pass, ""},
	"a crash": {func(s *script) {
		handOffs(s)
		s.fault(serverDies, 1, 5)
		s.Measured = &history.Measured{
			Crashes: []history.Breakdown{{At: 30 * ms, Text: "it ended", Said: []string{"Error: boom"}}},
		}
	}, Fail, history.Panicked},
}

// TestCalls: a call that did not return is blamed, or excused.
func TestCalls(t *testing.T) {
	for name, tt := range callCases {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			tt.write(s)
			v := judgeCalls(s.prepare(t))
			if v.Status != tt.status || v.Cause != tt.cause {
				t.Errorf("got %v %q: %s", v.Status, v.Cause, v.Summary)
			}
		})
	}
}

// TestTheStoryOfACall: it says which call hangs, since when, what servers answered to others, and where the call waits.
func TestTheStoryOfACall(t *testing.T) {
	s := newScript()
	hangs(history.Hung{CalledOff: 3000 * ms, GivenUp: 8000 * ms, Text: "goroutine 7 [chan send]:\nlock.Unlock"})(s)
	v := judgeCalls(s.prepare(t))
	story := strings.Join(v.Story, "\n")
	for _, want := range []string{"w01 called release of page 0 at 0.020000 s, and it had not returned at 8.000000 s",
		"2 calls of other workers had an answer, the last at 0.501000 s", "\nlock.Unlock"} {
		if !strings.Contains(story, want) {
			t.Errorf("no %q in\n%s", want, story)
		}
	}
	if len(v.Evidence) != 1 || v.Evidence[0].Kind != history.Release {
		t.Errorf("got %+v", v.Evidence)
	}
}

// TestAProcessThatIsServedNoMore: a client is blamed if it gets only errors after servers answer again. It is not
// blamed if it is served now and then, was never served, waits for timeouts, or if its servers do not answer.
func TestAProcessThatIsServedNoMore(t *testing.T) {
	for name, tt := range map[string]struct {
		write func(s *script)
		want  Status
	}{
		"after a failover": {func(s *script) { s.fault(taken, 500, 700); errorsFrom(s, 600, 12000, 2) }, Fail},
		"releases, although tries are answered": {func(s *script) {
			s.release(s.Ops[0].ID, 10, 11)
			s.fault(taken, 500, 700)
			for at := time.Duration(720); at < 12000; at += 100 {
				s.on(s.acquire(1, at, at+1, 300), history.Release, at+2, at+4)
				s.last().Outcome, s.last().Reason = history.Unknown, history.Other
			}
		}, Fail},
		"one answer in between": {func(s *script) {
			s.fault(taken, 500, 501)
			errorsFrom(s, 600, 1500, 2)
			s.busy(1, 1500, 1501)
			errorsFrom(s, 1510, 2400, 2)
		}, Pass},
		"it never was served": {func(s *script) {
			s.Ops = nil
			s.fault(taken, 500, 700)
			errorsFrom(s, 600, 6000, 2)
		}, Pass},
		"a little patience":       {func(s *script) { s.fault(taken, 500, 700); errorsFrom(s, 600, 12000, 4) }, Pass},
		"timeouts":                {func(s *script) { s.fault(taken, 500, 501); errorsFrom(s, 600, 12000, 400) }, Pass},
		"servers are still away":  {func(s *script) { s.fault(taken, 500, 5500); errorsFrom(s, 600, 6000, 2) }, Pass},
		"no longer than is known": {func(s *script) { s.fault(taken, 500, 501); errorsFrom(s, 600, 1500, 2) }, Pass},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			s.acquire(1, 0, 1, 300)
			tt.write(s)
			v := judgeCalls(s.prepare(t))
			if v.Status != tt.want || (v.Cause == history.Unanswered) != (tt.want == Fail) {
				t.Errorf("got %v %s: %s", v.Status, v.Cause, v.Summary)
			}
		})
	}
}

// taken is a failover: servers do not answer, and may have lost the last writes.
var taken = history.Effect{Hits: []history.Party{history.Servers}, Blocks: true, Loses: history.LosesWrites}

// errorsFrom are tries of a worker that end in errors, each after the time each.
func errorsFrom(s *script, from, to, each time.Duration) {
	for at := from; at < to; at += each + 20 {
		op := s.busy(1, at, at+each)
		op.Outcome, op.Reason = history.Unknown, history.Other
	}
}

// BenchmarkCallsBesideFaults judges calls that are all slower than the slowest undisturbed call, beside many faults.
func BenchmarkCallsBesideFaults(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := newScript()
			for i := range time.Duration(n) {
				s.fault(serverHangs, 100*i, 100*i+50)
				s.release(s.acquire(1, 100*i+1, 100*i+40, 300), 100*i+41, 100*i+80)
			}
			c := s.prepare(b)
			for b.Loop() {
				calls.Check(c)
			}
		})
	}
}
