package checker

import (
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

// longKeys are sights of a key at 100 ms whose lease is 300 ms.
var longKeys = map[string]struct {
	until    time.Duration // expiry of the key, as it is seen at 100 ms
	refused  bool          // another worker is refused after the lease
	jump     bool          // the server's clock is set
	token    bool          // the token is that of the hold
	failures string
}{
	"as long as the lease": {300 * ms, false, false, true, "lease-validity: silent-reacquire"},
	"twice as long": {
		600 * ms, false, false, true, "lease-validity: ttl-too-long liveness: ttl-too-long",
	},
	"twice as long, by a clock": {600 * ms, false, true, true, ""},
	"twice as long, of an unknown try": {
		600 * ms, false, false, false, "lease-validity: silent-reacquire liveness: ttl-too-long",
	},
	"for ever": {
		history.Forever, false, false, true, "lease-validity: ttl-too-long liveness: ttl-too-long",
	},
	"for ever, of no hold":             {history.Forever, false, false, false, "lease-validity: silent-reacquire"},
	"as long as its own try asked for": {700 * ms, false, false, false, "lease-validity: silent-reacquire"},
	"longer than its own lease, as long as another's": {
		400 * ms, false, false, true, "lease-validity: ttl-too-long",
	},
	"another is refused": {300 * ms, true, false, true, "lease-validity: ttl-too-long"},
}

// TestAKeyThatLivesTooLong: during the run, a key was seen with a longer TTL than any requested lease. So the key had
// not expired, and an extension did not take it back. A clock that was set explains such a key. A key that expires
// with its lease proves nothing.
func TestAKeyThatLivesTooLong(t *testing.T) {
	for name, tt := range longKeys {
		s := newScript()
		s.Claims.Expires, s.Claims.Cleans = true, true
		a := s.acquire(1, 0, 1, 300)
		for at := time.Duration(100); at < 130; at += 10 { // the key is seen again and again, but blamed once
			op := s.op(history.Sight, -1, at, at)
			op.Until, op.Token = tt.until, 7
			if tt.token {
				op.Token = uint64(a)
			}
		}
		if tt.jump {
			s.fault(history.Effect{Hits: []history.Party{history.Clocks}, Loses: history.LosesTime}, 20, 21)
		}
		if tt.until == 400*ms { // no longer than the longest lease of the run
			s.acquire(4, 900, 901, 350)
		}
		if tt.until == 700*ms { // a refused try had requested this lease
			op := s.busy(3, 10, 11)
			op.Token, op.TTL = 7, 700*ms
		}
		if tt.refused {
			s.busy(2, 350, 351)
		}
		s.extend(a, 400, 401, 300)
		s.release(a, 410, 411)
		c := s.prepare(t)
		var got []string
		for _, k := range []Checker{leaseValidity, liveness} {
			if v := k.Check(c); v.Status == Fail {
				got = append(got, k.Name+": "+v.Cause)
				if v.Violations != 1 {
					t.Errorf("%s: %d violations of %s, want one", name, v.Violations, k.Name)
				}
			}
		}
		if strings.Join(got, " ") != tt.failures {
			t.Errorf("%s: %q, want %q", name, got, tt.failures)
		}
	}
}
