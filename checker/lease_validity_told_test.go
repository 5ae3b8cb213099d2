package checker

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

// TestHowLateAHolderWasTold: the time in which the holder's process was stopped does not count. A server keeps a lease
// of 300 ms for at least 299 ms.
func TestHowLateAHolderWasTold(t *testing.T) {
	for stop, want := range map[bool]string{false: "1 hold lost under a living holder: told after 152 ms (p50), " +
		"152 ms at most (0.507 leases), 0 never",
		true: "told after 52.0 ms (p50), 52.0 ms at most"} {
		s := newScript()
		s.Claims.Renews, s.Bounds.Rate = true, 0
		s.fault(serverHangs, 100, 460)
		if stop {
			s.fault(processStops, 320, 420)
			s.gap(0, 320, 420)
			s.Processes = 2
			s.gap(1, 300, 440) // this pause excuses nothing here
		}
		a := s.acquire(1, 0, 1, 300)
		s.last().Until = history.Forever
		op := s.on(a, history.Extend, 110, 120) // otherwise it is unknown whether the lock reports renewals
		op.Outcome, op.Reason = history.Failed, history.Unreachable
		op = s.on(a, history.Lose, 450, 450)
		op.Outcome = history.OK
		if v := leaseValidity.Check(s.prepare(t)); !strings.Contains(v.Summary, want) {
			t.Errorf("process stopped %v: %v: %s, want %s", stop, v.Status, v.Summary, want)
		}
	}
}

// TestWhoIsToldOfALoss: a hold is lost when another worker has the lock, when its lease is over without a renewal, or
// when its release says so. Its holder is told after some time, or never. A holder that died or gave the lock back in
// time lost nothing.
func TestWhoIsToldOfALoss(t *testing.T) {
	for name, c := range map[string]struct {
		build func(*builder)
		want  string
	}{
		"given back in time": {func(s *builder) {
			s.release(0, s.grant(0, 1, 2, 300), 100, 101, history.OK)
			s.release(1, s.grant(1, 102, 103, 300), 110, 111, history.OK)
		}, ""},
		"told after another's grant": {func(s *builder) {
			a := s.grant(0, 1, 2, 300)
			b := s.grant(1, 100, 101, 300)
			s.add(history.Op{Kind: history.Lose, Outcome: history.OK, Hold: a, Call: 150, Return: 151})
			s.release(0, a, 160, 161, history.Failed)
			s.release(1, b, 170, 171, history.OK)
		}, "1 hold lost under a living holder: told after 50.0 ms (p50), 50.0 ms at most (0.167 leases), 0 never"},
		"never": {func(s *builder) {
			a := s.grant(0, 1, 2, 300)
			b := s.grant(1, 100, 101, 300)
			s.release(1, b, 110, 111, history.OK)
			s.release(0, a, 160, 161, history.Failed)
		}, "1 hold lost under a living holder: none told in a known time, 1 never, which went on for up to 59.0 ms"},
		"died": {func(s *builder) {
			a := s.grant(0, 1, 2, 300)
			s.add(history.Op{Kind: history.Crash, Outcome: history.OK, Hold: a, Call: 50, Return: 51})
			s.release(1, s.grant(1, 400, 401, 300), 410, 411, history.OK)
		}, ""},
		"by an extension, after the lease": {func(s *builder) {
			a := s.grant(0, 1, 2, 300)
			s.add(history.Op{Kind: history.Extend, Outcome: history.OK, Hold: a, Call: 100, Return: 101,
				TTL: 300, Until: 400})
			s.add(history.Op{Kind: history.Extend, Outcome: history.Failed, Reason: history.Lost, Hold: a, Call: 500,
				Return: 503, TTL: 300})
			s.release(0, a, 510, 511, history.Failed)
		}, "1 hold lost under a living holder: told after 103 ms (p50), 103 ms at most (0.343 leases), 0 never"},
	} {
		s := newBuilder()
		s.h.Workers, s.h.Keys = 2, 1
		s.h.Claims = history.Claims{Excludes: true, Expires: true, Owned: true, Renews: true}
		c.build(s)
		v := leaseValidity.Check(s.prepared())
		if got := strings.ReplaceAll(v.Told.Text(), "\u00a0", " "); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		if c.want != "" && !strings.Contains(v.Summary, v.Told.Text()) {
			t.Errorf("%s: the verdict does not say it: %s", name, v.Summary)
		}
	}
}

// TestToldAddsUp: counts are added; quantiles are of all samples, or there are none.
func TestToldAddsUp(t *testing.T) {
	run := func(never int, told ...time.Duration) *Told {
		l := &leases{ruler: ruler{c: &Case{ttl: time.Second}}}
		var all []loss
		for _, after := range told {
			all = append(all, loss{told: true, known: true, after: after})
		}
		for range never {
			all = append(all, loss{known: true, after: 7 * time.Second})
		}
		return l.sum(append(all, loss{}))
	}
	var many, both []time.Duration
	for i := range 100 {
		many = append(many, time.Duration(i+1)*time.Millisecond)
	}
	both = append(append(both, many...), 3*time.Second, 2*time.Second)
	var sum Told
	for _, one := range []*Told{run(2, many...), run(0), run(1, 3*time.Second, 2*time.Second)} {
		sum.Add(one)
	}
	want := run(3, both...)
	want.Count, want.Unknown = 102+3+3, 3
	if !reflect.DeepEqual(sum, *want) {
		t.Errorf("got %s, want %s", sum.Text(), want.Text())
	}
	if text := sum.Text(); !strings.Contains(text, "(p99)") || *sum.P50 != int64(51*time.Millisecond) ||
		*sum.P99 != int64(2*time.Second) {
		t.Errorf("got %s", text)
	}
	saved := Told{Count: 1, P50: want.P50, Max: want.Max} // its samples are not stored
	if sum.Add(&saved); sum.P50 != nil || sum.P99 != nil || *sum.Max != int64(3*time.Second) ||
		sum.Count != want.Count+1 {
		t.Errorf("with one from a file: %s", sum.Text())
	}
}

// TestALossThatOnlyTheAnswerTells: a lock that renews may be unable to ask its server. Then it may announce the loss
// of a hold by the answer to the release. If nothing is broken, or the lock has not tried for long enough, that is a
// premature loss.
func TestALossThatOnlyTheAnswerTells(t *testing.T) {
	for name, c := range map[string]struct {
		hangs bool
		from  time.Duration
		fails bool
	}{
		"the server hangs": {true, 956, false}, "the server hangs, too early": {true, 500, true},
		"calm": {false, 956, true},
	} {
		s := newScript()
		s.Claims.Renews = true
		a := s.acquire(1, 2, 34, 1000)
		s.last().Until = history.Forever
		if c.hangs {
			s.fault(serverHangs, 300, 1468)
		}
		s.denied(a, c.from, c.from+32)
		if v := leaseValidity.Check(s.prepare(t)); (v.Status == Fail) != c.fails {
			t.Errorf("%s: got %s %q: %s", name, v.Status, v.Cause, v.Summary)
		}
	}
}
