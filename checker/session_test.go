package checker

import (
	"testing"
	"time"

	"hammerlock/history"
)

// TestASessionEndsWithItsLinks: a fault that cuts links may end sessions. If the holder hears of that before the next
// grant, nothing is wrong. If it does not, the fault is to blame, and without the fault the lock.
func TestASessionEndsWithItsLinks(t *testing.T) {
	cut := history.Effect{Hits: []history.Party{history.Links}, Blocks: true}
	for name, tt := range map[string]struct {
		effect history.Effect
		told   bool
		cause  string
	}{
		"told":               {cut, true, ""},
		"not told":           {cut, false, history.ServiceLoss},
		"only late messages": {history.Effect{Hits: cut.Hits}, false, history.DoubleGrant},
	} {
		s := newBuilder()
		s.h.Claims, s.h.Session = history.Claims{Excludes: true, Owned: true}, true
		s.h.Faults = []history.Injection{{Name: "cut", Effect: tt.effect}}
		h := s.grant(1, 0, 1, 0)
		s.add(history.Op{Kind: history.Fault, Outcome: history.OK, Worker: -1, Key: -1, Call: 10, Return: 11})
		if tt.told {
			s.add(history.Op{Kind: history.Lose, Outcome: history.OK, Worker: 1, Hold: h, Call: 20, Return: 21})
		}
		s.grant(2, 30, 31, 0)
		s.add(history.Op{Kind: history.Heal, Outcome: history.OK, Worker: -1, Key: -1, Call: 40, Return: 41})
		s.h.Fenced = true
		c := s.prepared()
		if v := checkExclusion(c); v.Cause != tt.cause {
			t.Errorf("%s: got %v %q: %s, want %q", name, v.Status, v.Cause, v.Summary, tt.cause)
		}
		if w := c.unfenced(&c.holds[0], &c.holds[1]); w != nil {
			t.Errorf("%s: the counter of fencing tokens is lost by %s", name, w)
		}
	}
}

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
