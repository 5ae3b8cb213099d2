package explore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/checker"
	"hammerlock/locks"
	"hammerlock/topologies"
)

// mute is a lock whose releases return an error, as from a script that does not compile.
type mute struct{ locks.Lock }

func (mute) Release(context.Context, locks.Lease) error { return errors.New("no") }

// TestAnErrorWithoutACauseIsAViolation: without a deviation, every lock call must succeed or be refused.
func TestAnErrorWithoutACauseIsAViolation(t *testing.T) {
	spec := find(t, "lease")
	open := spec.Open
	spec.Open = func(e locks.Env) (locks.Lock, error) {
		l, err := open(e)
		return mute{l}, err
	}
	f := run(t, spec, bounded(0)).Found
	if f == nil || f.Checker != "calls" || f.Cause != "unanswered" || len(f.Schedule) != 0 {
		t.Fatalf("got %+v, want an answer that was not given", f)
	}
	if last := f.Trace[len(f.Trace)-1]; f.Summary == "" || len(f.Trace) < 3 {
		t.Errorf("got %s: %s", f.Summary, last)
	}
}

// newer is a lock that calls a function of the server, which the server in memory does not support.
type newer struct {
	locks.Lock
	site redis.UniversalClient
}

func (l newer) Release(ctx context.Context, lease locks.Lease) error {
	return l.site.FCall(ctx, "unlock", []string{lease.Key}, lease.Token).Err()
}

// TestACommandThatTheServerInMemoryLacks: a lock that uses it is not explored, and the command is named. The lock is
// not to blame.
func TestACommandThatTheServerInMemoryLacks(t *testing.T) {
	spec := find(t, "lease")
	open := spec.Open
	spec.Open = func(e locks.Env) (locks.Lock, error) {
		l, err := open(e)
		return newer{l, e.Sites[0]}, err
	}
	r := run(t, spec, bounded(1))
	want := "not explored: the server in memory does not know FCALL"
	if r.Status != checker.Inconclusive || !r.Excluded || r.Verdict() != want {
		t.Errorf("got %v: %s, want %q", r.Status, r.Verdict(), want)
	}
}

// picky is a lock whose library requires RESP 3, and says so in each error.
type picky struct {
	locks.Lock
	client *redis.Client
}

func (l picky) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	if l.client.Do(ctx, "HELLO", "3").Err() != nil {
		return locks.Lease{Key: key}, errors.New("RESP 3 is needed")
	}
	return l.Lock.Acquire(ctx, key, ttl)
}

func (l picky) Close() error { return errors.Join(l.client.Close(), l.Lock.Close()) }

// TestTheServerInMemorySpeaksRESP2: a lock that needs RESP 3 is not explored either.
func TestTheServerInMemorySpeaksRESP2(t *testing.T) {
	spec := find(t, "lease")
	open := spec.Open
	spec.Open = func(e locks.Env) (locks.Lock, error) {
		l, err := open(e)
		return picky{l, e.Places[0].Client(topologies.ClientOptions{}).(*redis.Client)}, err
	}
	r := run(t, spec, bounded(1))
	if want := "not explored: the server in memory does not know HELLO 3 (RESP 3)"; r.Verdict() != want {
		t.Errorf("got %v: %s, want %q", r.Status, r.Verdict(), want)
	}
}

// TestAMinorityDies: a lock on several sites must be granted although a minority of them is dead. A lock that waits
// for each site is never granted.
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
		if again, err := Replay(t, spec, r.Options, r.Found.Schedule); err != nil || again == nil ||
			again.Cause != cause {
			t.Errorf("%s: %v is replayed as %v", name, r.Found.Cause, err)
		}
		t.Logf("%s\n%s", r.Verdict(), strings.Join(r.Found.Trace, "\n"))
	}
}

// TestWhatTheServerInMemoryLacks: a lock that needs more is not explored, and is not to blame.
func TestWhatTheServerInMemoryLacks(t *testing.T) {
	spec := find(t, "lease")
	spec.Open = func(locks.Env) (locks.Lock, error) { return nil, fmt.Errorf("%w: no modules", locks.ErrServer) }
	r := run(t, spec, bounded(1))
	if r.Status != checker.Inconclusive || !r.Excluded || r.Verdict() != "not explored: open lease: "+
		"the servers cannot run this lock: no modules" {
		t.Errorf("got %v: %s", r.Status, r.Verdict())
	}
}
