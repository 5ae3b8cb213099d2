package checker

import (
	"testing"
)

// TestALateReleaseIsNotBlamedForWhatAServerForgot: a release whose answer comes after its lease has ended nobody's hold that was
// extended after that. What a server forgets later is the server's doing.
func TestALateReleaseIsNotBlamedForWhatAServerForgot(t *testing.T) {
	for _, tt := range []struct {
		extended bool
		cause    string
	}{{true, "service-loss"}, {false, "foreign-release"}} {
		s := newScript()
		s.Sites = 1
		s.release(s.acquire(1, 0, 1, 300), 100, 700)
		b := s.acquire(2, 650, 651, 300)
		if tt.extended {
			s.extend(b, 720, 721, 300)
		}
		s.fault(serverDies, 800, 801)
		s.release(s.acquire(1, 810, 811, 300), 900, 901)
		if v := Exclusion.Check(s.prepare(t)); v.Status != Fail || v.Cause != tt.cause {
			t.Errorf("extended %t: got %s %q: %s, want %s", tt.extended, v.Status, v.Cause, v.Summary, tt.cause)
		}
	}
}
