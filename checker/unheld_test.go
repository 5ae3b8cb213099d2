package checker

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

// unheld is a successful release by a worker that held nothing.
func unheld(s *script, worker int32, call, ret time.Duration) {
	s.op(history.Release, worker, call, ret)
}

// TestAReleaseOfAWorkerThatHeldNothing: such a release freed the lock of another worker. This must be found in three
// cases: the holder hears of it, a second worker is granted the lock, or neither happens. It does not count as the
// holder's own release.
func TestAReleaseOfAWorkerThatHeldNothing(t *testing.T) {
	foreign := []string{"release: foreign-release"}
	for name, tt := range map[string]struct {
		tell func(s *script)
		want []string
	}{
		"its victim hears of it": {func(s *script) {
			a := s.acquire(1, 0, 1, 300)
			unheld(s, 2, 50, 51)
			s.denied(a, 100, 101)
		}, append(foreign, "lease-validity: foreign-release")},
		"a second worker is in": {func(s *script) {
			a := s.acquire(1, 0, 1, 300)
			unheld(s, 2, 50, 51)
			s.release(s.acquire(3, 60, 61, 300), 130, 131)
			s.denied(a, 100, 101)
		}, append(foreign, "exclusion: foreign-release", "lease-validity: foreign-release",
			"linearizable: not-linearizable")},
		"its victim dies": {func(s *script) {
			s.acquire(1, 0, 1, 300)
			unheld(s, 2, 50, 51)
			s.release(s.acquire(3, 60, 61, 300), 130, 131)
		}, append(foreign, "exclusion: foreign-release", "linearizable: not-linearizable")},
		"it is not alone with its victim": {func(s *script) {
			s.release(s.acquire(3, 0, 1, 300), 10, 11)
			a := s.acquire(1, 20, 21, 300)
			unheld(s, 2, 50, 51)
			s.denied(a, 100, 101)
			s.release(s.acquire(3, 110, 111, 300), 120, 121)
		}, append(foreign, "lease-validity: foreign-release")},
		"on another page": {func(s *script) {
			s.release(s.acquire(1, 0, 1, 300), 100, 101)
			unheld(s, 2, 50, 51)
			s.last().Key = 1
		}, nil},
		"without a hold around it": {func(s *script) {
			s.release(s.acquire(1, 0, 1, 300), 10, 11)
			unheld(s, 2, 50, 51)
			s.release(s.acquire(1, 100, 101, 300), 110, 111)
		}, []string{"release: false-release"}},
	} {
		s := newScript()
		tt.tell(s)
		var got []string
		verdicts, err := Judge(s.prepare(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, v := range verdicts {
			if v.Status == Fail {
				got = append(got, v.Checker+": "+v.Cause)
			}
		}
		slices.Sort(got)
		slices.Sort(tt.want)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// TestStoresInALaneOfTheirOwn: the stores of a hold may be in another lane (log) than its acquire. In this test, a
// store came after the release, when another worker had the lock.
func TestStoresInALaneOfTheirOwn(t *testing.T) {
	s := newScript()
	a := s.acquire(1, 0, 1, 300)
	lane := func(n uint64, op *history.Op) history.ID {
		op.ID = history.ID(900<<40 | n)
		return op.ID
	}
	s.on(a, history.Load, 2, 3)
	one := lane(1, s.on(a, history.Store, 4, 5))
	s.last().Value = 1
	s.release(a, 6, 7)
	b := s.acquire(2, 8, 9, 300)
	s.on(b, history.Load, 10, 11).Seen = one
	s.last().Value = 1
	for n, from := range []history.ID{one, history.ID(900<<40 | 2)} {
		lane(uint64(2+n), s.on(a, history.Store, time.Duration(12+2*n), time.Duration(13+2*n)))
		s.last().Seen, s.last().Value = from, int64(2+n)
	}
	s.on(b, history.Store, 16, 17).Seen = one
	s.last().Value = 2
	s.release(b, 18, 19)
	verdicts, err := Judge(s.prepare(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range verdicts {
		switch {
		case v.Checker == Exclusion.Name && (v.Status != Fail || v.Cause != history.Overrun ||
			!slices.ContainsFunc(v.Story, func(s string) bool { return strings.Contains(s, "stored after that") })):
			t.Errorf("got %s %q: %q", v.Status, v.Cause, v.Story)
		case v.Checker == lostUpdates.Name && v.Status != Fail:
			t.Errorf("got %s %q", v.Status, v.Summary)
		}
	}
}

// TestAHolderThatHeedsIsStopped: a holder that heeds its deadline stores late only if it is paused between its look at
// the clock and its store. The lock is not to blame for that, even if the pause was planned.
func TestAHolderThatHeedsIsStopped(t *testing.T) {
	for heeds, want := range map[bool]Status{true: Inconclusive, false: Fail} {
		s := newScript()
		s.Heeds, s.Processes, s.Bounds.Gap = heeds, 2, ms
		a := s.acquire(1, 0, 1, 100)
		s.on(a, history.Load, 2, 3)
		s.fault(processStops, 5, 150)
		s.gap(0, 5, 150)
		b := s.acquire(2, 110, 111, 100)
		s.last().Process = 1
		s.on(b, history.Load, 112, 113).Process = 1
		s.on(a, history.Store, 151, 152).Value = 1
		s.denied(a, 153, 154)
		s.release(b, 160, 161).Process = 1
		verdicts, err := Judge(s.prepare(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range verdicts {
			if v.Checker == Exclusion.Name && (v.Status != want || want == Fail && v.Cause != history.Overrun) {
				t.Errorf("heeds %t: got %s %q: %s", heeds, v.Status, v.Cause, v.Summary)
			}
		}
	}
}
