package checker

import (
	"testing"
	"time"

	"hammerlock/history"
)

// TestAHoldOfASessionEndsWithItsHolder: if holds end with connections, a grant after the holder's crash is right, and a
// grant before it is too early. If holds do not end with connections, both are too early.
func TestAHoldOfASessionEndsWithItsHolder(t *testing.T) {
	for name, c := range map[string]struct {
		session bool
		next    time.Duration // time of the next grant; the holder dies at 4
		want    Status
	}{"after the crash": {true, 6, Pass}, "before the crash": {true, 2, Fail}, "no session": {false, 6, Fail}} {
		t.Run(name, func(t *testing.T) {
			s := newBuilder()
			s.h.Claims, s.h.Session = history.Claims{Excludes: true}, c.session
			s.grant(1, 0, 1, 0)
			if c.next > 4 {
				s.refuse(2, 1, 2)
				s.add(history.Op{Kind: history.Crash, Worker: 1, Call: 4, Return: 4})
				s.grant(2, 5, c.next, 0)
			} else {
				s.grant(2, 1, c.next, 0)
				s.add(history.Op{Kind: history.Crash, Worker: 1, Call: 4, Return: 4})
			}
			if v := checkExclusion(s.prepared()); v.Status != c.want {
				t.Errorf("got %v: %s, want %v", v.Status, v.Summary, c.want)
			}
		})
	}
}
