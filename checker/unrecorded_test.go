package checker

import (
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

// TestRenewalsThatAreNotRecorded: if a lock that renews has recorded no extension, a release may succeed long after
// the lease. Then the lock is not blamed. If it has recorded an extension, it is blamed.
func TestRenewalsThatAreNotRecorded(t *testing.T) {
	for name, x := range map[string]struct {
		renews, recorded bool
		released         time.Duration
		want             Status
	}{
		"no record":            {true, false, 500, Inconclusive},
		"a record":             {true, true, 500, Fail},
		"within the lease":     {true, false, 200, Pass},
		"a lock without claim": {false, false, 500, Fail},
	} {
		s := newBuilder()
		s.h.Claims = history.Claims{Excludes: true, Expires: true, Owned: true, Renews: x.renews}
		for i := range 30 {
			at := 1000 * time.Duration(i)
			hold := s.grant(int32(i%2), at, at+1, 300)
			if x.recorded {
				s.add(history.Op{Kind: history.Extend, Outcome: history.OK, Worker: int32(i % 2), Hold: hold,
					Call: at + 2, Return: at + 3, TTL: 300, Until: at + 295})
			}
			s.release(int32(i%2), hold, at+x.released, at+x.released+1, history.OK)
		}
		all, err := Judge(s.prepared())
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range all {
			if v.Checker != release.Name {
				continue
			}
			if told := strings.Contains(v.Summary, "Env.Renewals"); v.Status != x.want ||
				told != (x.want == Inconclusive) {
				t.Errorf("%s: got %v: %s", name, v.Status, v.Summary)
			}
		}
	}
}

// TestAMissingRecordHidesNoOtherFailure: missing extensions explain no release of another's lock.
func TestAMissingRecordHidesNoOtherFailure(t *testing.T) {
	s := newScript()
	s.Claims.Renews = true
	s.release(s.acquire(1, 0, 1, 300), 500, 501)
	a := s.acquire(1, 1000, 1001, 300)
	unheld(s, 2, 1050, 1051)
	s.denied(a, 1100, 1101)
	all, err := Judge(s.prepare(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if v.Checker == release.Name && (v.Status != Fail || v.Cause != history.ForeignRelease) {
			t.Errorf("got %v %q: %s", v.Status, v.Cause, v.Summary)
		}
	}
}
