package ownlock

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"hammerlock/hammertest"
	"hammerlock/locks"
	"hammerlock/scenarios"
)

// Five common mistakes. TestWrongLocks runs the test of each wrong lock in a separate process, and checks that this
// test fails as it should.
var wrong = map[string]struct {
	open  hammertest.Open
	cause string
}{
	"no TTL":               {func(e locks.Env) (locks.Lock, error) { return &noTTL{newWorker(e)}, nil }, "leak"},
	"TTL in a second step": {func(e locks.Env) (locks.Lock, error) { return &secondStep{newWorker(e)}, nil }, "leak"},
	"DEL without a look": {func(e locks.Env) (locks.Lock, error) {
		return &plainDel{newWorker(e)}, nil
	}, "foreign-release"},
	"GET, then DEL": {func(e locks.Env) (locks.Lock, error) {
		return &getDel{newWorker(e)}, nil
	}, "foreign-release"},
	"lease from the reply": {func(e locks.Env) (locks.Lock, error) {
		return &fromReply{newWorker(e)}, nil
	}, "over-claim"},
}

// played is the variable that names what a process is started for.
const played = "OWN_LOCK_PLAYED"

func TestWrongLocks(t *testing.T) {
	for name, lock := range wrong {
		t.Run(name, func(t *testing.T) {
			out := fails(t, "TestPlayed", played+"="+name)
			for _, want := range []string{
				"FAIL  ", ", " + lock.cause + ", with ", "(* = a deviation", "repeat   go test -C ",
			} {
				if !strings.Contains(out, want) {
					t.Errorf("its test does not say %q:\n%s", want, out)
				}
			}
		})
	}
}

// TestAWrongLockUnderLoad: a real server shows the same, with the story of one loss.
func TestAWrongLockUnderLoad(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil || testing.Short() {
		t.Skip("it takes four seconds, and a redis-server")
	}
	out := fails(t, "TestPlayedUnderLoad", played+"=DEL without a look")
	words := strings.Join(strings.Fields(out), " ") // where lines are wrapped depends on the directory's name
	for _, want := range []string{"--- FAIL: TestPlayedUnderLoad/late-release", "VERDICT FAIL exclusion: ",
		"was granted token", "HAMMERLOCK_SEED=", "-run ^TestPlayedUnderLoad$/^late-release$ ."} {
		if !strings.Contains(words, want) {
			t.Errorf("its test does not say %q:\n%s", want, out)
		}
	}
	saved := regexp.MustCompile(`history +(\S+)`).FindStringSubmatch(out)
	if saved == nil {
		t.Fatalf("it does not say where the run is:\n%s", out)
	}
	if _, err := os.Stat(saved[1]); err != nil {
		t.Errorf("the run is not where it says: %v", err)
	}
}

// TestNoServer: without redis-server a test is skipped at home, and fails where CI is set.
func TestNoServer(t *testing.T) {
	for name, ci := range map[string]string{"at home": "CI=", "in CI": "CI=true"} {
		t.Run(name, func(t *testing.T) {
			out, failed := self(t, "TestVerify", "PATH=/nowhere", ci)
			if failed != (ci == "CI=true") || !strings.Contains(out, "to install one") ||
				!strings.Contains(out, "HAMMERLOCK_REDIS_SERVER=embedded") {
				t.Errorf("failed: %v\n%s", failed, out)
			}
		})
	}
}

// TestPlayed is the test of a wrong lock, in a process that was started for it.
func TestPlayed(t *testing.T) {
	c := config
	c.Options = bounds(1)
	hammertest.Explore(t, wanted(t), c)
}

func TestPlayedUnderLoad(t *testing.T) {
	c := config
	s, _ := scenarios.Find("late-release")
	c.Scenarios = []scenarios.Scenario{s}
	hammertest.Verify(t, wanted(t), c)
}

func wanted(t *testing.T) hammertest.Open {
	t.Helper()
	lock, ok := wrong[os.Getenv(played)]
	if !ok {
		t.Skip("played by another test")
	}
	return lock.open
}

// self runs a test of this program and says whether it failed.
func self(t *testing.T, test string, env ...string) (out string, failed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^"+test+"$")
	cmd.Env = append(append(os.Environ(), "TMPDIR="+t.TempDir()), env...) // what a failure leaves
	text, err := cmd.CombinedOutput()
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		t.Fatal(err)
	}
	return string(text), err != nil
}

func fails(t *testing.T, test string, env ...string) string {
	t.Helper()
	out, failed := self(t, test, env...)
	if !failed {
		t.Errorf("%s passed:\n%s", test, out)
	}
	return out
}

type noTTL struct{ *worker }

func (w *noTTL) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	l, err := w.worker.Acquire(ctx, key, 0)
	l.Until = call.Add(ttl - drift(ttl))
	return l, err
}

type secondStep struct{ *worker }

func (w *secondStep) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	m := &Mutex{Client: w.env.Sites[0], Key: key, token: rand.Text(), until: time.Now().Add(ttl - drift(ttl))}
	lease := locks.Lease{Key: key, Token: m.token, Until: m.until}
	granted, err := m.Client.SetNX(ctx, key, m.token, 0).Result()
	if err == nil && !granted {
		return lease, locks.ErrBusy
	}
	w.held[m.token] = m
	if err != nil {
		return lease, err
	}
	return lease, m.Client.PExpire(ctx, key, ttl).Err()
}

type plainDel struct{ *worker }

func (w *plainDel) Release(ctx context.Context, l locks.Lease) error {
	return w.env.Sites[0].Del(ctx, l.Key).Err()
}

type getDel struct{ *worker }

func (w *getDel) Release(ctx context.Context, l locks.Lease) error {
	token, err := w.env.Sites[0].Get(ctx, l.Key).Result()
	if err != nil || token != l.Token {
		return locks.ErrLost
	}
	return w.env.Sites[0].Del(ctx, l.Key).Err()
}

type fromReply struct{ *worker }

func (w *fromReply) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	l, err := w.worker.Acquire(ctx, key, ttl)
	l.Until = time.Now().Add(ttl)
	return l, err
}
