package checker

import (
	"testing"
	"time"
)

// TestALateMajorityDoesNotLastLonger: a holder waited for the last site of its majority. It keeps the lock only until
// the lease ends on the first site, so the next grant is right. With one site it would be a double grant.
func TestALateMajorityDoesNotLastLonger(t *testing.T) {
	for sites, want := range map[int]Status{1: Fail, 5: Pass} {
		s := newScript()
		s.Sites = sites
		a := s.acquire(1, 0, 10, 400)
		b := s.acquire(2, 200, 500, 400)
		c := s.acquire(3, 700, 780, 400)
		s.denied(a, 790, 791)
		s.denied(b, 900, 901)
		s.release(c, 902, 903)
		if v := Exclusion.Check(s.prepare(t)); v.Status != want {
			t.Errorf("%d sites: got %s %q: %s, want %s", sites, v.Status, v.Cause, v.Summary, want)
		}
	}
}

// TestAReleaseThatIsTooLateMayHaveFreedASite: the lease ends during a release, so a majority answers that the hold is
// lost. The release may have freed the other sites from its call on. So the next grant may come before the lease ends,
// but not before that call.
func TestAReleaseThatIsTooLateMayHaveFreedASite(t *testing.T) {
	for _, tt := range []struct {
		sites int
		call  time.Duration
		fails bool
	}{{3, 249, false}, {1, 249, true}, {3, 100, true}} {
		s := newScript()
		s.Sites = tt.sites
		s.denied(s.acquire(1, 0, 15, 300), 135, 546)
		s.release(s.acquire(2, tt.call, tt.call+1, 300), tt.call+120, tt.call+121)
		if v := Exclusion.Check(s.prepare(t)); (v.Status == Fail) != tt.fails {
			t.Errorf("%d sites, granted at %d ms: got %s %q: %s, want that it fails: %t", tt.sites, tt.call, v.Status,
				v.Cause, v.Summary, tt.fails)
		}
	}
}
