package checker

import (
	"testing"
	"time"

	"hammerlock/history"
)

// TestAKeyThatRefusesNoWorkerIsARecord: a key may outlive its lease, and a release, if the lock does not claim to clean
// and no worker is refused by it. The lock is to blame where others are refused although no worker can have it.
func TestAKeyThatRefusesNoWorkerIsARecord(t *testing.T) {
	const later = 60_000
	refused := func(s *script, from time.Duration) {
		for at := from; at < from+120; at += 10 {
			s.busy(2, at, at+1).TTL = 300 * ms
		}
	}
	for name, tt := range map[string]struct {
		until time.Duration // of the key, as it was found at the end
		write func(*script, history.ID)
		want  string
	}{
		"a field has its end":               {later * ms, func(*script, history.ID) {}, ""},
		"it never ends":                     {history.Forever, func(*script, history.ID) {}, ""},
		"refused by it after the lease":     {later * ms, func(s *script, a history.ID) { refused(s, 320) }, history.TTLTooLong},
		"the same, for ever":                {history.Forever, func(s *script, a history.ID) { refused(s, 320) }, history.Leak},
		"refused as long as the lease":      {later * ms, func(s *script, a history.ID) { refused(s, 100) }, ""},
		"a record that cleans":              {later * ms, func(s *script, a history.ID) { s.Claims.Cleans = true }, history.TTLTooLong},
		"some met, when the lease was over": {later * ms, func(s *script, a history.ID) { s.busy(2, 320, 321); s.busy(3, 320, 321) }, ""},
		"refused by the next holder":        {later * ms, func(s *script, a history.ID) { s.acquire(3, 310, 311, 300); refused(s, 320) }, ""},
		"released, and refused by it": {later * ms, func(s *script, a history.ID) {
			s.release(a, 100, 101)
			refused(s, 150)
		}, history.TTLTooLong},
		"released, and taken by the next": {later * ms, func(s *script, a history.ID) {
			s.release(a, 100, 101)
			s.release(s.acquire(3, 110, 111, 300), 120, 121)
		}, ""},
	} {
		s := newScript()
		s.Claims.Expires = true
		a := s.acquire(1, 0, 1, 300)
		s.op(history.End, 2, 0, 1)
		tt.write(s, a)
		op := s.op(history.Found, -1, 5000, 5001)
		op.Token, op.Until = uint64(a), tt.until
		c := s.prepare(t)
		if v := liveness.Check(c); v.Cause != tt.want {
			t.Errorf("%s: %q (%s), want %q", name, v.Cause, v.Summary, tt.want)
		}
	}
}
