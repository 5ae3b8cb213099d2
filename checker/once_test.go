package checker

import (
	"slices"
	"testing"
	"time"

	"hammerlock/history"
)

// grantedTick is a tick that a worker was granted and gave back; then another worker asked for it.
func grantedTick(s *builder, key int32, at time.Duration, again func(hold history.Op)) {
	hold := history.Op{Kind: history.Acquire, Outcome: history.OK, Key: key, Call: at, Return: at + 2, TTL: 1000,
		Until: at + 1000}
	id := s.add(hold)
	s.add(history.Op{Kind: history.Release, Outcome: history.OK, Key: key, Hold: id, Call: at + 3, Return: at + 4})
	hold.Worker, hold.Hold = 1, 0
	again(hold)
}

// TestOnce: a tick is free again when its lease ends, even if the lock does not claim Expires, but not after a
// release. A grant with a late answer may have been the first one.
func TestOnce(t *testing.T) {
	later := func(by time.Duration, change func(*history.Op)) func(s *builder) func(history.Op) {
		return func(s *builder) func(history.Op) {
			return func(op history.Op) {
				op.Call, op.Return, op.Until = op.Call+by, op.Return+by, op.Until+by
				change(&op)
				s.add(op)
			}
		}
	}
	refused := func(op *history.Op) { op.Outcome, op.Reason, op.Until = history.Failed, history.Busy, 0 }
	for name, x := range map[string]struct {
		again func(*builder) func(history.Op)
		cause string
	}{
		"refused":           {later(10, refused), ""},
		"granted again":     {later(10, func(*history.Op) {}), history.RunTwice},
		"after its lease":   {later(1100, func(*history.Op) {}), ""},
		"heard of late":     {later(-1, func(op *history.Op) { op.Call -= 1100; op.Return += 20 }), ""},
		"heard of too late": {later(-1, func(op *history.Op) { op.Call -= 900; op.Return += 20 }), history.RunTwice},
		"without an answer": {
			later(10, func(op *history.Op) { op.Outcome, op.Reason = history.Unknown, history.Timeout }), "",
		},
		"of the same moment": {later(0, func(*history.Op) {}), history.RunTwice},
	} {
		for _, claims := range []history.Claims{{Excludes: true, Expires: true, Once: true}, {Once: true}} {
			s := newBuilder()
			s.h.Claims = claims
			for key := range int32(30) {
				grantedTick(s, key, 2000+10*time.Duration(key), later(10, refused)(s))
			}
			grantedTick(s, 30, 2500, x.again(s))
			v := judgeOnce(s.prepared())
			if v.Cause != x.cause || (v.Status == Fail) != (x.cause != "") || x.cause == "" && v.Status != Pass {
				t.Errorf("%s, expires %v: got %v %q: %s", name, claims.Expires, v.Status, v.Cause, v.Summary)
			}
		}
	}
}

// TestATickOfWhichNothingIsKnown: the summary counts it, and does not say that it ran.
func TestATickOfWhichNothingIsKnown(t *testing.T) {
	s := newBuilder()
	s.h.Claims = history.Claims{Once: true}
	for key := range int32(20) {
		grantedTick(s, key, 2000+10*time.Duration(key), func(op history.Op) {
			op.Outcome, op.Reason, op.Until = history.Failed, history.Busy, 0
			s.add(op)
		})
	}
	for w := range int32(2) {
		s.add(history.Op{Kind: history.Acquire, Outcome: history.Unknown, Worker: w, Key: 20, Call: 2500, Return: 2600})
	}
	expect(t, judgeOnce(s.prepared()), Pass, "", "21 ticks, none run twice or left out, 1 without a known grant")
}

// TestATickThatWasLeftOut: a worker is refused a tick that no worker was granted, so the tick never runs.
func TestATickThatWasLeftOut(t *testing.T) {
	for _, answered := range []bool{true, false} {
		s := newBuilder()
		s.h.Claims = history.Claims{Excludes: true, Expires: true, Once: true}
		s.refuse(0, 10, 11)
		if answered {
			s.refuse(1, 12, 13)
		} else {
			s.add(history.Op{
				Kind: history.Acquire, Reason: history.Timeout, Worker: 1, Call: 12, Return: 20, TTL: 1000,
			})
		}
		v := judgeOnce(s.prepared())
		if (v.Cause == history.LeftOut) != answered || !answered && v.Status != Inconclusive {
			t.Errorf("answered %v: got %v %q", answered, v.Status, v.Cause)
		}
		if answered && !slices.Contains(v.Story, "w00 was told at 0.011000 s that another worker has page 0, "+
			"which no worker was ever granted, in 2 calls") {
			t.Errorf("got %q", v.Story)
		}
	}
}

// TestATickWithoutItsGrant: the record of a tick's grant may be missing if the history is cut.
func TestATickWithoutItsGrant(t *testing.T) {
	s := newBuilder()
	s.h.Claims, s.h.Partial = history.Claims{Excludes: true, Expires: true, Once: true}, "cut"
	s.refuse(0, 10, 11)
	s.refuse(1, 12, 13)
	expect(t, judgeOnce(s.prepared()), Inconclusive, "", "1 tick that two workers asked for")
}

// TestATickThatServersForgot: if a tick ran twice after a loss by a planned fault, the fault is to blame; after an
// unplanned loss, the verdict is undecided. A loss before the first grant explains nothing, and none explains a tick
// that was left out.
func TestATickThatServersForgot(t *testing.T) {
	for name, x := range map[string]struct {
		from, to time.Duration // time of the loss
		planned  bool
		out      bool // the tick is left out
		status   Status
		cause    string
	}{
		"planned":              {50, 60, true, false, Fail, history.ServiceLoss},
		"unplanned":            {50, 60, false, false, Inconclusive, ""},
		"planned, before":      {1, 5, true, false, Fail, history.RunTwice},
		"unplanned, before":    {1, 5, false, false, Fail, history.RunTwice},
		"left out, planned":    {50, 60, true, true, Fail, history.LeftOut},
		"left out, unplanned":  {50, 60, false, true, Fail, history.LeftOut},
		"left out, long after": {1, 5, false, true, Fail, history.LeftOut},
	} {
		s := newScript()
		s.Claims.Once, s.Claims.Expires = true, true
		if x.planned {
			s.fault(serverDies, x.from, x.to)
		} else {
			s.op(history.Incident, -1, x.from, x.to)
		}
		if x.out {
			s.busy(1, 100, 101)
		} else {
			s.release(s.acquire(1, 20, 21, 1000), 22, 23)
			s.acquire(2, 100, 101, 1000)
		}
		if v := judgeOnce(s.prepare(t)); v.Status != x.status || v.Cause != x.cause {
			t.Errorf("%s: got %v %q, want %v %q", name, v.Status, v.Cause, x.status, x.cause)
		}
	}
}
