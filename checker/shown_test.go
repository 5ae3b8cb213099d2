package checker

import (
	"testing"
	"time"

	"hammerlock/history"
)

// shown are histories of holds for 300 ms, in process 1. In each of them process 0 looks into the only server, up to
// 10 ms after a moment at which the key that it sees has to be gone.
var shown = map[string]func(*script){
	"after a release, before a grant": func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.release(a, 50, 51)
		s.sees(53, uint64(a), 300)
		s.acquire(2, 60, 61, 300)
	},
	"under the next hold": func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.release(a, 50, 51)
		s.sees(62, uint64(a), 300)
		b := s.acquire(2, 60, 61, 300)
		s.release(b, 70, 71)
	},
	"under the next hold, after an expiry": func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		b := s.acquire(2, 304, 305, 300)
		s.sees(308, uint64(a), 310)
		s.release(b, 320, 321)
		s.denied(a, 322, 323)
	},
	"after an expiry": func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.sees(308, uint64(a), 312)
	},
	"at the end": func(s *script) {
		a := s.acquire(1, 0, 1, 300)
		s.release(a, 50, 51)
		s.sees(53, uint64(a), 300)
		s.last().Kind = history.Found
	},
	"of a refused try": func(s *script) {
		s.acquire(1, 0, 1, 300)
		token := s.busy(2, 50, 51).Token
		s.sees(53, token, 340)
	},
}

// TestAKeyIsSeenOnAnotherClock: a key may have been seen earlier than its stamp says, by as much as clocks differ. If
// they do not differ, a key proves that something is wrong.
func TestAKeyIsSeenOnAnotherClock(t *testing.T) {
	for name, write := range shown {
		for slack, wrong := range map[time.Duration]bool{0: true, 10: false} {
			s := newScript()
			s.Claims.Cleans, s.Nodes, s.Sites, s.Processes, s.Bounds.Slack = true, 1, 1, 3, slack*ms
			write(s)
			for i := range s.Ops {
				if s.Ops[i].Worker >= 0 {
					s.Ops[i].Process = 1
				}
			}
			list, err := Judge(s.prepare(t))
			if err != nil {
				t.Fatal(err)
			}
			failed := ""
			for _, v := range list {
				if v.Status == Fail {
					failed += v.Checker + ": " + v.Cause + " "
				}
			}
			if wrong != (failed != "") {
				t.Errorf("%s, slack %d ms: got %q, want a failure: %t", name, slack, failed, wrong)
			}
		}
	}
}
