package explore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/locks"
	"hammerlock/locks/known"
)

// fragile is a lease that breaks when its release fails with an error other than ErrLost. It breaks in that call,
// when it is closed, in a goroutine of its own, or with its process.
type fragile struct {
	locks.Lock
	where string
}

func (l fragile) Release(ctx context.Context, lease locks.Lease) error {
	err := l.Lock.Release(ctx, lease)
	if err == nil || strings.Contains(err.Error(), "not held") {
		return err
	}
	var nobody *locks.Lease
	switch l.where {
	case "Release":
		_ = nobody.Token
	case "a goroutine":
		done := make(chan bool)
		go func() {
			defer close(done)
			_ = nobody.Token
		}()
		<-done
	case "an exit":
		fmt.Fprintln(os.Stderr, "cannot go on")
		os.Exit(7)
	}
	return err
}

func (l fragile) Close() error {
	if l.where == "Close" {
		panic("already closed")
	}
	return l.Lock.Close()
}

// fragileLocks lists these locks for the exploring process.
func fragileLocks() (list []locks.Spec) {
	for _, where := range []string{"Release", "Close", "a goroutine", "an exit"} {
		spec, _ := known.Find("lease")
		open := spec.Open
		spec.Name = where
		spec.Open = func(e locks.Env) (locks.Lock, error) {
			l, err := open(e)
			return fragile{l, where}, err
		}
		list = append(list, spec)
	}
	return append(list, strangeLocks()...)
}

// TestLivePanicOfALockIsFound: a panic is reported as a violation with its schedule. If it ends the exploring
// process, the suite goes on.
func TestLivePanicOfALockIsFound(t *testing.T) {
	for where, want := range map[string]struct {
		deviations     int
		summary, trace string
	}{
		"Release": {1, "Release by w00 panics: runtime error: invalid memory address or nil pointer dereference, " +
			"in hammerlock/explore.fragile.Release (panic_test.go:", "* w00 connection breaks: no SET p t1 NX PX 300"},
		"Close": {0, "Close by w00 panics: already closed, in hammerlock/explore.fragile.Close (panic_test.go:",
			"has released"},
		"an exit": {1, "the lock ends its process: exit status 7", "  it writes: cannot go on"},
		"a goroutine": {1, "a goroutine of the lock panics: runtime error: invalid memory address or " +
			"nil pointer dereference", "* all connections break: the schedule has ended"},
	} {
		r, err := InProcess(t.Context(), Orders{Lock: where, Options: bounded(1)})
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		f := r.Found
		if r.Status != checker.Fail || f == nil || f.Checker != history.Panicked ||
			len(f.Schedule) != want.deviations || !strings.HasPrefix(f.Summary, want.summary) {
			t.Fatalf("%s: got %s, %+v, want a panic with %d deviations: %s", where, r.Verdict(), f,
				want.deviations, want.summary)
		}
		if f.Number < 1 {
			t.Errorf("%s: found in schedule %d", where, f.Number)
		}
		if text := strings.Join(f.Trace, "\n"); !strings.Contains(text, want.trace) || len(f.Trace) > 40 {
			t.Errorf("%s: the trace lacks %q, or is long:\n%s", where, want.trace, text)
		}
	}
}

// TestOurOwnPanicIsNoLocks: a panic in the explorer is no finding.
func TestOurOwnPanicIsNoLocks(t *testing.T) {
	for goroutine, lock := range map[string]bool{
		"acme.(*lock).renew(0x1)\n\t/lock.go:7":                                             true,
		"runtime.f()\n\t/x.go:1\nhammerlock/explore.(*schedule).run(0x1)\n\t/schedule.go:7": false,
	} {
		var said tail
		for _, line := range []string{
			beginsSchedule + "\n", beginsSchedule + "\n",
			takesDeviation + `{"at":7,"option":2,"what":"w01 reply set: is lost"}` + "\n",
			"\npanic: oh\n\ngoroutine 7 [running]:\n" + goroutine + "\n\ngoroutine 1 [select]:\nmain()\n",
		} {
			_, _ = said.Write([]byte(line))
		}
		f := said.died(errors.New("exit status 2"))
		if (f != nil) != lock || f != nil && (f.Number != 2 || len(f.Schedule) != 1 || f.Schedule[0].At != 7) {
			t.Errorf("%s: got %+v, want that it is the lock's: %t", goroutine, f, lock)
		}
	}
}
