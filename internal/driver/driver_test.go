package driver

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/internal/scripts"
	"hammerlock/locks"
)

// TestMain runs the evil driver if the process was started as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "evil" {
		os.Exit(scripts.EvilDriver(os.Args[2], os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// program is the command and the environment of an evil driver.
func program(t *testing.T, mode string) (args, env []string) {
	t.Helper()
	return []string{os.Args[0], "evil", mode}, []string{"TMPDIR=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
}

// started starts an evil driver.
func started(t *testing.T, mode string) (*Process, error) {
	t.Helper()
	args, env := program(t, mode)
	s, err := Greet(t.Context(), args, env)
	if err != nil {
		return nil, err
	}
	p, err := Start(t.Context(), s, Options{Topology: "single", Lease: time.Second})
	if err == nil {
		t.Cleanup(p.Close)
	}
	return p, err
}

// cycle acquires and releases 30 times, or until the first error.
func cycle(ctx context.Context, l locks.Lock) error {
	for range 30 {
		lease, err := l.Acquire(ctx, "k", time.Hour)
		if err == nil {
			err = l.Release(ctx, lease)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TestEveryMisbehaviourEndsAndIsNamed runs a worker and pings against every evil driver.
func TestEveryMisbehaviourEndsAndIsNamed(t *testing.T) {
	t.Parallel()
	const unanswered = "deadline exceeded"
	const answered = "the lock is held by another worker" // after the call is cancelled
	cases := map[string]string{                           // the error; empty = no error
		"right": "", "stubborn": "", "floods-err": "", "ok-after-lost": "",
		"no-hello": "no greeting within 15s. It must write", "no-flush": "and flush its standard output",
		"other-version": "it speaks protocol 2, this suite speaks protocol 1",
		"wrong-claim":   `claim "perfect": there is excludes, readers, `,
		"dies-at-once":  "ended unexpectedly (exit status 7). Its standard error: cannot import redis",
		"dies-opening":  "ended unexpectedly (exit status 5)",
		"dies-asked":    "ended unexpectedly (exit status 6)", "dies-holding": "ended unexpectedly (exit status 6)",
		"hangs": "has not answered a ping for 5s", "never-reads": "has not answered a ping for 5s",
		"half-a-line": "has written 6 bytes without a newline: every message ends with one",
		"twice":       "twice: every request has one answer", "unknown-id": "which was never sent",
		"others-id": answered,
		"garbage":   unanswered, "long-line": "a line of more than 64 KiB",
		"floods-out":   "lines of its standard output were no messages, such as",
		"closes-out":   "closed its standard output and goes on",
		"lost-unknown": "as lost, which no acquire had", "negative": "valid_ms -5: a duration",
		"huge":        "valid_ms 1e+15: a duration",
		"undecided":   "an answer says one of",
		"id-as-text":  `"id" is a string, and must be a whole number, 0 or more; it wrote`,
		"large-fence": `"fence" is a number 1180591620717411303424, and must be a whole number below 2^63; it wrote`,
	}
	slots := make(chan struct{}, 8) // they mostly wait
	var all sync.WaitGroup
	for _, mute := range []bool{true, false} { // the modes with the longest wait for a greeting begin first
		for mode, want := range cases {
			if strings.HasPrefix(mode, "no-") != mute {
				continue
			}
			slots <- struct{}{}
			all.Go(func() {
				defer func() { <-slots }()
				err := driven(t, mode, want != "" && want != unanswered && want != answered)
				if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
					t.Errorf("%s: got %v, want %q", mode, err, want)
				}
			})
		}
	}
	all.Wait()
}

// driven is the error of a worker of this driver, or, if the driver ends, the reason.
func driven(t *testing.T, mode string, ends bool) error {
	p, err := started(t, mode)
	if err != nil {
		return err
	}
	defer p.Close()
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		p.Watch(done, func(Ping) {})
	}()
	ctx, cancel := t.Context(), func() {}
	if !ends { // a call without an answer is cancelled
		ctx, cancel = context.WithTimeout(ctx, 3*time.Second)
	}
	defer cancel()
	err = cycle(ctx, p.Worker(nil))
	if ends { // a call may fail shortly before the ping does
		select {
		case <-p.done:
			err = p.Err()
		case <-time.After(live.Deadline):
		}
	}
	close(done)
	<-watched
	return err
}

// TestAProgramThatIsNoDriver: the error quotes what it printed in place of a greeting.
func TestAProgramThatIsNoDriver(t *testing.T) {
	t.Parallel()
	_, err := Greet(t.Context(), []string{"echo", "hi"}, []string{"PATH=" + os.Getenv("PATH")})
	if err == nil || !strings.Contains(err.Error(), `1 line of its standard output was no message: "hi\n"`) {
		t.Errorf("got %v", err)
	}
}

// TestASlowStartIsAskedAgain: a program without a timely greeting is started a second time.
func TestASlowStartIsAskedAgain(t *testing.T) {
	t.Parallel()
	args, env := program(t, "right")
	const late = `if [ ! -e "$TMPDIR/once" ]; then : > "$TMPDIR/once"; exec sleep 60; fi; exec "$@"`
	if s, err := Greet(t.Context(), append([]string{"sh", "-c", late, "sh"}, args...), env); err != nil ||
		s.Name != "exec:evil-right@1" {
		t.Errorf("got %q, %v, want the greeting of the second try", s.Name, err)
	}
}

// TestALateAnswerIsUnknownAndWhatItGrantsIsGivenBack stops a driver and its children during a call, until the caller
// has gone.
func TestALateAnswerIsUnknownAndWhatItGrantsIsGivenBack(t *testing.T) {
	t.Parallel()
	p, err := started(t, "right")
	if err != nil {
		t.Fatal(err)
	}
	l := p.Worker(nil)
	stop(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = l.Acquire(ctx, "k", time.Hour)
	if outcome, reason := locks.Classify(err); outcome != history.Unknown || reason != history.Canceled {
		t.Errorf("an acquire that was called off: %v, %v, %v", outcome, reason, err)
	}
	if err := p.child.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	live.Wait(t, "that what was granted to no worker is given back", func() bool {
		_, err := p.Worker(nil).Acquire(t.Context(), "k", time.Second)
		if err != nil && !errors.Is(err, locks.ErrBusy) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// TestOnlyARenewedLeaseHasASignal: a lock that renews has a loss signal, which its holder relies on instead of the
// deadline. The possible renewal is recorded whether the program returns a token or not.
func TestOnlyARenewedLeaseHasASignal(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"right", "tokenless"} {
		p, err := started(t, mode)
		if err != nil {
			t.Fatal(err)
		}
		for _, renews := range []bool{false, true} {
			p.spec.Claims.Renews = renews
			var lane *history.Lane
			if renews {
				lane = history.NewLane(history.NewClock(0), 0, 0, 8, nil)
			}
			l := p.Worker(lane)
			lease, err := l.Acquire(t.Context(), "k", time.Hour)
			if err != nil || (lease.Lost != nil) != renews || lease.Until.IsZero() != renews {
				t.Errorf("%s, renews %v: %+v, %v", mode, renews, lease, err)
			}
			if err := l.Release(t.Context(), lease); err != nil {
				t.Error(err)
			}
			if renews {
				mayHaveBeenRenewed(t, lane, lease.Token)
			}
		}
	}
}

// mayHaveBeenRenewed expects an extension with unknown outcome of the hold with that token.
func mayHaveBeenRenewed(t *testing.T, lane *history.Lane, token string) {
	t.Helper()
	n := 0
	history.NewMerge(lane.Clock(), []*history.Lane{lane}).Flush(func(op *history.Op) {
		if n++; op.Kind != history.Extend || op.Outcome != history.Unknown || token == "" ||
			op.Token != history.Hash(token) || op.Return == history.Forever {
			t.Errorf("a lease that may have been renewed: %+v", *op)
		}
	})
	if n != 1 {
		t.Errorf("%d operations say that the lease may have been renewed", n)
	}
}

// TestADriverThatNeverReadsDoesNotBlock sends more than fits into a pipe.
func TestADriverThatNeverReadsDoesNotBlock(t *testing.T) {
	t.Parallel()
	p, err := started(t, "right")
	if err != nil {
		t.Fatal(err)
	}
	stop(t, p)
	p.patience = 100 * time.Millisecond
	for range 2000 {
		err = p.send(request{Op: opAcquire, Key: strings.Repeat("k", 100)}, newCall(opAcquire, true))
		if err != nil {
			break
		}
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) ||
		!strings.Contains(p.Err().Error(), "it has not read its standard input for 100ms") {
		t.Errorf("got %v, %v", err, p.Err())
	}
}

// TestNothingIsLeft ends drivers that have children, also in their own sessions.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"parent", "daemon"} {
		args, env := program(t, mode)
		s, err := Greet(t.Context(), args, env)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(strings.TrimPrefix(env[0], "TMPDIR=") + "/grandchild")
		if err != nil || s.Name != "exec:evil-"+mode+"@1" {
			t.Fatal(s.Name, err)
		}
		pid, _ := strconv.Atoi(string(text))
		live.Wait(t, "the end of what the driver started", func() bool {
			return syscall.Kill(pid, 0) != nil || zombie(pid)
		})
	}
}

// stop stops all threads of a driver: a thread that runs on could still answer.
func stop(t *testing.T, p *Process) {
	t.Helper()
	if err := p.child.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	runs := func(stat string) bool {
		text, err := os.ReadFile(stat)
		return err == nil && !strings.Contains(string(text), ") T ")
	}
	live.Wait(t, "a driver that stands still", func() bool {
		threads, err := filepath.Glob("/proc/" + strconv.Itoa(p.PID()) + "/task/*/stat")
		return err == nil && len(threads) > 0 && !slices.ContainsFunc(threads, runs)
	})
}

// zombie reports whether a process has ended and its parent has not waited for it.
func zombie(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(text), ") Z ")
}

// TestThePasswordIsShownNowhere writes a password to a driver's standard error.
func TestThePasswordIsShownNowhere(t *testing.T) {
	t.Parallel()
	var l tail
	l.secret("hunter2")
	_, _ = l.Write([]byte("AUTH hunter2: WRONGPASS"))
	if l.text() != "AUTH ***: WRONGPASS" || l.mask("pass=hunter2") != "pass=***" {
		t.Errorf("%q", l.text())
	}
}

// TestADriverInheritsNoMoreThanIsAllowed: with PYTHONUNBUFFERED a missing flush would go unnoticed.
func TestADriverInheritsNoMoreThanIsAllowed(t *testing.T) {
	t.Parallel()
	all := map[string]string{"PATH": "/bin", "HOME": "/root", "PYTHONUNBUFFERED": "1", "REDIS_TLS": "no",
		"AWS_SECRET": "x"}
	got := Environment(func(name string) string { return all[name] }, []string{"REDIS_TLS"})
	if want := []string{"PATH=/bin", "HOME=/root", "REDIS_TLS=no"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"python3 driver.py":                 {"python3", "driver.py"},
		`  node 'my driver.js' a\ b "c'd" `: {"node", "my driver.js", "a b", "c'd"},
		`x ''`:                              {"x", ""},
		"echo $HOME;ls":                     {"echo", "$HOME;ls"},
		"":                                  nil,
		`a "b`:                              nil,
	} {
		got, err := Split(text)
		if !slices.Equal(got, want) || (err != nil) != (want == nil) {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
		if again, err := Split(Join(got)); want != nil && (err != nil || !slices.Equal(again, want)) {
			t.Errorf("%q is written as %q and read as %q, %v", want, Join(got), again, err)
		}
	}
}

// TestAnAnswerThatIsNoMessage: if no answer to open comes, the error quotes the line that was no message.
func TestAnAnswerThatIsNoMessage(t *testing.T) {
	t.Parallel()
	const hello = `echo '{"hello":"hammerlock-driver","protocol":1,"name":"x","version":"1","claims":["excludes"]}'; ` +
		`read ask; echo "{'id': 1, 'ok': True}"; exec sleep 60`
	s, err := Greet(t.Context(), []string{"sh", "-c", hello}, []string{"PATH=" + os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err = Start(ctx, s, Options{Topology: "single", Lease: time.Second})
	if want := `1 line of its standard output was no message: "{'id': 1, `; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
