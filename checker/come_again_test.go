package checker

import (
	"testing"
	"time"

	"hammerlock/history"
)

// TestWhoComesAgainWaits: a lock is free but refuses visits that consist of one try each. A worker that comes again
// and again counts as waiting, however short its visits are. A few visits far apart prove nothing. Visits that may
// keep a place in a queue prove nothing, either.
func TestWhoComesAgainWaits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		every, until time.Duration // ms
		setup        func(*script)
		reason       history.Reason
		want         Status
		cause        string
	}{
		"for a minute":     {200, 60_000, func(*script) {}, history.Busy, Fail, history.Deadlock},
		"of several sites": {200, 60_000, func(s *script) { s.Sites = 5 }, history.Quorum, Fail, history.Deadlock},
		"until one of them is given": {200, 5_000, func(s *script) { s.acquire(4, 5_001, 5_002, 300) }, history.Busy,
			Fail, history.Stuck},
		"seldom":         {900, 60_000, func(*script) {}, history.Busy, Pass, ""},
		"four times":     {450, 1_700, func(*script) {}, history.Busy, Pass, ""},
		"held meanwhile": {200, 60_000, func(s *script) { s.acquire(4, 14, 15, 70_000) }, history.Busy, Pass, ""},
		"a queue":        {200, 60_000, func(s *script) { s.Claims.Ordered = true }, history.Busy, Pass, ""},
	} {
		s := newScript()
		s.Sites, s.Bounds.Gap = 1, 10*ms
		tt.setup(s)
		s.release(s.acquire(1, 0, 1, 300), 10, 11)
		s.op(history.End, 1, 0, 12)
		for at, w := time.Duration(20), int32(1); at < tt.until; at, w = at+tt.every, w%3+1 {
			op := s.busy(w, at, at+1)
			op.Reason, op.TTL = tt.reason, 300*ms
			s.op(history.End, w, at, at+1)
		}
		s.op(history.Final, -1, max(tt.until, 10_000), max(tt.until, 10_000)+1)
		v := liveness.Check(s.prepare(t))
		if v.Status != tt.want && (v.Status == Fail || tt.want == Fail) || v.Cause != tt.cause {
			t.Errorf("%s: got %s %q: %s, want %s %q", name, v.Status, v.Cause, v.Summary, tt.want, tt.cause)
		}
	}
}
