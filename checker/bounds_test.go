package checker

import (
	"slices"
	"testing"
	"time"

	"hammerlock/history"
)

// early is a lease that may have begun before it was requested.
func early(told, lost, granted time.Duration) func(s *script) {
	return func(s *script) {
		a := s.acquire(1, 100, 101, 300)
		s.last().Until = told * ms
		if lost > 0 {
			s.denied(a, lost, lost+1)
		}
		s.acquire(2, granted, granted+1, 300)
	}
}

// forgotten makes the server lose its keys before the history that write makes.
func forgotten(write func(s *script)) func(s *script) {
	return func(s *script) {
		s.fault(serverDies, 80, 90)
		write(s)
	}
}

// unheard adds an extension by the holder without an answer.
func unheard(write func(s *script)) func(s *script) {
	return func(s *script) {
		write(s)
		op := s.extend(s.Ops[0].ID, 200, 230, 300)
		op.Outcome, op.Reason, op.Until = history.Unknown, history.Timeout, 0
	}
}

// withLinger makes a lease last for up to 0.8 s more.
func withLinger(s *script) { s.Bounds.Linger = 800 * ms }

// withEarlyLeases makes leases begin before they are requested.
func withEarlyLeases(s *script) { s.Claims.Begins = true }

// rounded is a lease of 1.2 s. The answer to its holder says that it lasts for `told` ms. The holder extends it at
// `extended` ms (0 = never), and another worker is granted the lock at `granted` ms.
func rounded(told, extended, granted time.Duration) func(s *script) {
	return func(s *script) {
		a := s.acquire(1, 0, 1, 1200)
		s.last().Until = told * ms
		if extended > 0 {
			s.extend(a, extended, extended+1, 1200)
			s.last().Until = (extended + told) * ms
		}
		s.acquire(2, granted, granted+1, 1200)
	}
}

// boundedLeases are histories in which a lease lasts longer than was requested, or begins before the request.
var boundedLeases = map[string]struct {
	claim, write   func(s *script)
	fails, without []string // causes with the claim, and without it
}{
	"rounded up to seconds, told and extended": {
		withLinger, rounded(1990, 1500, 3600), nil, []string{"silent-reacquire"},
	},
	"rounded up, nothing is told of it": {
		withLinger, rounded(1180, 1500, 2900), nil, []string{"silent-reacquire"},
	},
	"extended when even that was over": {
		withLinger, rounded(1180, 2100, 3600), []string{"silent-reacquire"}, []string{"silent-reacquire"},
	},
	"told more than that": {withLinger, rounded(2100, 0, 2200), []string{"over-claim"},
		[]string{"over-claim"}},
	"granted to another before what was told": {withLinger, rounded(1990, 0, 1500), []string{"over-claim"},
		[]string{"over-claim"}},
	"granted to another in the lease": {withLinger, rounded(1990, 0, 600), []string{"double-grant"},
		[]string{"double-grant", "over-claim"}},
	"begun before, and told so": {withEarlyLeases, early(350, 0, 360), nil, []string{"double-grant"}},
	"begun before, and its holder hears of its end": {
		withEarlyLeases, early(350, 355, 360), nil, []string{"premature-loss"},
	},
	"begun before, another's too early": {withEarlyLeases, early(350, 355, 330), []string{"double-grant"},
		[]string{"double-grant"}},
	"begun before, and lost too early": {withEarlyLeases, early(350, 340, 360), []string{"premature-loss"},
		[]string{"premature-loss"}},
	"begun before, forgotten before it was told": {
		withEarlyLeases, forgotten(early(350, 340, 360)), nil, []string{"premature-loss"},
	},
	"begun before, and extended without an answer": {
		withEarlyLeases, unheard(early(350, 0, 240)), []string{"double-grant"}, []string{"double-grant"},
	},
	"told more than a lease from the call": {
		withEarlyLeases, early(450, 460, 470), []string{"over-claim"}, []string{"over-claim"},
	},
}

// TestLeasesAreJudgedByTheirBounds: a lease may begin earlier or last longer than was requested, by as much as the
// lock claims. A lease beyond that fails.
func TestLeasesAreJudgedByTheirBounds(t *testing.T) {
	for name, tt := range boundedLeases {
		for claimed, want := range map[bool][]string{true: tt.fails, false: tt.without} {
			s := newScript()
			if tt.write(s); claimed {
				tt.claim(s)
			}
			c := s.prepare(t)
			var got []string
			for _, v := range []Verdict{Exclusion.Check(c), leaseValidity.Check(c)} {
				if v.Status == Fail {
					got = append(got, v.Cause)
				}
			}
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, want) {
				t.Errorf("%s, claimed %v: got %q, want %q", name, claimed, got, want)
			}
		}
	}
}

// TestAReentrantLockIsBusyWhenAnEarlyLeaseIsOver: a lock may claim that leases begin before the request. Then it may
// refuse a re-entry after the deadline that it gave.
func TestAReentrantLockIsBusyWhenAnEarlyLeaseIsOver(t *testing.T) {
	for claimed, want := range map[bool]Status{true: Inconclusive, false: Fail} {
		s := newScript()
		s.Claims.Reentrant, s.Claims.Begins = true, claimed
		a := s.acquire(1, 100, 101, 300)
		s.last().Until, s.last().Value = 350*ms, 1
		x := s.reenter(a, 355, 356, 300)
		x.Outcome, x.Reason, x.Until = history.Failed, history.Busy, 0
		if v := reentrancy.Check(s.prepare(t)); v.Status != want {
			t.Errorf("claimed %v: got %s %s: %s, want %s", claimed, v.Status, v.Cause, v.Summary, want)
		}
	}
}
