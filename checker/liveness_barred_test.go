package checker

import (
	"testing"
	"time"

	"hammerlock/history"
)

// TestAKeyThatRefusesNoWorkerIsARecord: if the lock does not claim to clean up, a key may stay after its lease or
// release, as long as no worker is refused because of it. The lock is blamed if workers are refused while none can have
// the lock.
func TestAKeyThatRefusesNoWorkerIsARecord(t *testing.T) {
	const later = 60_000
	refused := func(s *script, from time.Duration) {
		for at := from; at < from+120; at += 10 {
			s.busy(2, at, at+1).TTL = 300 * ms
		}
	}
	for name, tt := range map[string]struct {
		until time.Duration // expiry of the key that was found at the end
		write func(*script, history.ID)
		want  string
	}{
		"a field has its end": {later * ms, func(*script, history.ID) {}, ""},
		"it never ends":       {history.Forever, func(*script, history.ID) {}, ""},
		"refused by it after the lease": {later * ms, func(s *script, a history.ID) {
			refused(s, 320)
		}, history.TTLTooLong},
		"the same, for ever": {history.Forever, func(s *script, a history.ID) {
			refused(s, 320)
		}, history.Leak},
		"refused as long as the lease": {later * ms, func(s *script, a history.ID) { refused(s, 100) }, ""},
		"a record that cleans": {later * ms, func(s *script, a history.ID) {
			s.Claims.Cleans = true
		}, history.TTLTooLong},
		"some met, when the lease was over": {later * ms, func(s *script, a history.ID) {
			s.busy(2, 320, 321)
			s.busy(3, 320, 321)
		}, ""},
		"refused by the next holder": {later * ms, func(s *script, a history.ID) {
			s.acquire(3, 310, 311, 300)
			refused(s, 320)
		}, ""},
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

// TestAWriterThatIsRefusedThoughFree: readers come and go. Between them no worker can have the lock, but a writer is
// always refused: the lock is blamed. It is not blamed if the writer is refused only while there are readers, or if
// the lock has a queue.
func TestAWriterThatIsRefusedThoughFree(t *testing.T) {
	for name, tt := range map[string]struct {
		until, every time.Duration // ms: the tries of the writer
		setup        func(*script)
		want         Status
	}{
		"between readers":             {4000, 10, func(*script) {}, Fail},
		"for a while":                 {900, 10, func(*script) {}, Pass},
		"only while one reads":        {4000, 200, func(*script) {}, Pass},
		"a lock with a queue":         {4000, 10, func(s *script) { s.Claims.Wakes = true }, Pass},
		"no lock that readers share":  {4000, 10, func(s *script) { s.Claims.Readers = false }, Pass},
		"messages are late meanwhile": {4000, 10, func(s *script) { s.fault(serverHangs, 1, 4000) }, Inconclusive},
	} {
		s := newScript()
		s.Claims.Readers, s.Bounds.Gap = true, 10*ms
		tt.setup(s)
		for at := time.Duration(0); at < 4000; at += 200 {
			h := s.acquire(1, at, at+1, 100)
			s.last().Permits = 1
			s.release(h, at+20, at+21)
		}
		for at := time.Duration(5); at < tt.until; at += tt.every {
			s.busy(2, at, at+1).TTL = 100 * ms
		}
		s.op(history.End, 2, 5, tt.until)
		s.op(history.Final, -1, 9000, 9001)
		if v := liveness.Check(s.prepare(t)); v.Status != tt.want {
			t.Errorf("%s: %s %s: %s, want %s", name, v.Status, v.Cause, v.Summary, tt.want)
		}
	}
}
