package checker

import (
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

// TestAKilledProcessMayHaveUnsentRecords: what killed workers had not sent may keep the lock until their leases have
// ended. After that, a dead lock is found. The suite itself records the crashes.
func TestAKilledProcessMayHaveUnsentRecords(t *testing.T) {
	for name, tt := range map[string]struct {
		died  time.Duration // when both workers of process 1 were killed, a second after its last record
		half  bool          // only one of the two was killed
		claim func(*history.Claims)
		want  Status
	}{
		"long before the dead time": {died: 2, want: Fail},
		"in the dead time":          {died: 12, want: Pass},
		"only one of its workers":   {died: 2, half: true, want: Inconclusive},
		"a lock without leases":     {died: 2, claim: func(c *history.Claims) { c.Expires = false }, want: Pass},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBuilder()
			s.h.Claims.Expires, s.tick, s.h.Processes = true, time.Second, 2
			s.h.Partial = "the last records of a machine are missing"
			if tt.claim != nil {
				tt.claim(&s.h.Claims)
			}
			for _, w := range []int32{8, 9} {
				s.refuse(w, 0, 1)
				s.h.Ops[len(s.h.Ops)-1].Process = 1
				if w == 9 || !tt.half {
					s.add(history.Op{Kind: history.Crash, Outcome: history.OK, Key: -1, Worker: w, Call: tt.died,
						Return: tt.died})
				}
			}
			livenessCases["nobody can have it"].write(s)
			v := judgeLiveness(s.prepared())
			if v.Status != tt.want {
				t.Errorf("got %s, want %s: %s", v.Status, tt.want, v.Summary)
			}
			if told := strings.Contains(v.Summary, "may belong to killed workers"); told != (tt.want == Pass) {
				t.Errorf("the missing records are told: %t: %s", told, v.Summary)
			}
		})
	}
}

// TestAHoldOfAKilledWorker: a hold whose release may be missing keeps the page until its lease has ended after the
// death of its worker, and for ever if the worker was not killed.
func TestAHoldOfAKilledWorker(t *testing.T) {
	for killed, want := range map[bool]Status{true: Fail, false: Inconclusive} {
		s := newBuilder()
		s.h.Claims.Expires, s.tick, s.h.Processes = true, time.Second, 2
		s.h.Partial = "the last records of a machine are missing"
		s.grant(9, 0, 1, 3)
		s.h.Ops[len(s.h.Ops)-1].Process = 1
		if killed {
			s.add(history.Op{Kind: history.Crash, Outcome: history.OK, Key: -1, Worker: 9, Call: 2, Return: 2})
		}
		s.asking(2, 3, 20)
		if v := judgeLiveness(s.prepared()); v.Status != want {
			t.Errorf("killed %t: got %s, want %s: %s", killed, v.Status, want, v.Summary)
		}
	}
}

// TestASessionThatWasReleasedUnrecorded: a killed worker may have released the lock before it died, so another grant
// before its death proves nothing.
func TestASessionThatWasReleasedUnrecorded(t *testing.T) {
	for partial, want := range map[string]Status{"": Fail, "its last records are missing": Inconclusive} {
		s := newBuilder()
		s.h.Claims.Excludes, s.h.Session, s.tick, s.h.Processes = true, true, time.Second, 2
		s.h.Partial = partial
		s.grant(9, 0, 1, 0)
		s.h.Ops[len(s.h.Ops)-1].Process = 1
		h := s.grant(2, 3, 4, 0)
		s.release(2, h, 5, 6, history.OK)
		s.add(history.Op{Kind: history.Crash, Outcome: history.OK, Key: -1, Worker: 9, Call: 8, Return: 8})
		if v := checkExclusion(s.prepared()); v.Status != want {
			t.Errorf("%q: got %s, want %s: %s", partial, v.Status, want, v.Summary)
		}
	}
}
