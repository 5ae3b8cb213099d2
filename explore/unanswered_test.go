package explore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"hammerlock/checker"
	"hammerlock/locks"
)

// mute is a lock whose releases end in an error, as of a script that does not compile.
type mute struct{ locks.Lock }

func (mute) Release(context.Context, locks.Lease) error { return errors.New("no") }

// TestAnErrorWithoutACauseIsAViolation: where nothing is broken every call to a lock has an answer.
func TestAnErrorWithoutACauseIsAViolation(t *testing.T) {
	spec := find(t, "lease")
	open := spec.Open
	spec.Open = func(e locks.Env) (locks.Lock, error) {
		l, err := open(e)
		return mute{l}, err
	}
	f := run(t, spec, bounded(0)).Found
	if f == nil || f.Checker != "activity" || f.Cause != "unanswered" || len(f.Schedule) != 0 {
		t.Fatalf("got %+v, want an answer that was not given", f)
	}
	if last := f.Trace[len(f.Trace)-1]; f.Summary == "" || len(f.Trace) < 3 {
		t.Errorf("got %s: %s", f.Summary, last)
	}
}

// TestAMinorityDies: a lock for several sites must be granted without it, and one that waits for each of them is not.
func TestAMinorityDies(t *testing.T) {
	for name, cause := range map[string]string{"redlock": "", "redlock-serial": "", "wait-all": "deadlock"} {
		if testing.Short() && name == "redlock-serial" {
			continue
		}
		spec := find(t, name)
		o := Briefly(spec)
		o.Deviations = 1
		r := run(t, spec, o)
		if r.Found == nil && cause != "" || r.Found != nil && r.Found.Cause != cause {
			t.Errorf("%s: %s, want cause %q", name, r.Verdict(), cause)
		}
		if r.Found == nil {
			continue
		}
		if again, err := Replay(t, spec, r.Options, r.Found.Schedule); err != nil || again == nil || again.Cause != cause {
			t.Errorf("%s: %v is replayed as %v", name, r.Found.Cause, err)
		}
		t.Logf("%s\n%s", r.Verdict(), strings.Join(r.Found.Trace, "\n"))
	}
}

// TestWhatTheServerInMemoryLacks: a lock that needs more is not explored, which is no mistake of the lock's.
func TestWhatTheServerInMemoryLacks(t *testing.T) {
	spec := find(t, "lease")
	spec.Open = func(locks.Env) (locks.Lock, error) { return nil, fmt.Errorf("%w: no modules", locks.ErrServer) }
	r := run(t, spec, bounded(1))
	if r.Status != checker.Inconclusive || !r.Excluded || r.Verdict() != "not explored: open lease: the servers cannot run this lock: no modules" {
		t.Errorf("got %v: %s", r.Status, r.Verdict())
	}
}
