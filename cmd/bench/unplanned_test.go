package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hammerlock/internal/cli"
	"hammerlock/internal/live"
	"hammerlock/internal/scripts"
)

// stopped is longer than the leases that are renewed, and these are long enough for renewals on a slow machine.
const stopped = 2500 * time.Millisecond

// TestWhatNobodyPlanned: in runs without faults, a server is killed, or the suite is stopped for longer than a lease.
// Each run ends inconclusive, reports what happened, and does not blame the lock. Further attempts are undisturbed,
// and pass.
func TestWhatNobodyPlanned(t *testing.T) {
	t.Parallel()
	kill := func(t *testing.T, _ int, servers []int) { send(t, syscall.SIGKILL, servers...) }
	stop := func(t *testing.T, all ...int) {
		send(t, syscall.SIGSTOP, all...)
		<-time.After(stopped)
		send(t, syscall.SIGCONT, all...)
	}
	suite := func(t *testing.T, suite int, _ []int) { stop(t, suite) }
	machine := func(t *testing.T, suite int, servers []int) { stop(t, slices.Concat([]int{suite}, servers)...) }
	dead := `ended unexpectedly \(signal: killed\)`
	for name, c := range map[string]struct {
		args []string
		do   func(t *testing.T, suite int, servers []int)
		want string
		code int
	}{
		"verify, servers die": {undisturbed("1"), kill, `VERDICT +INCONCLUSIVE .*` + dead, 3},
		"verify, another attempt": {undisturbed("4"), kill, `(?s)attempt 1 was inconclusive:.*` + dead +
			`.*VERDICT +PASS`, 0},
		"bench, servers die": {[]string{"bench", "--topology", "single", "--duration", "4s"}, kill,
			`SAFETY +INCONCLUSIVE .*` + dead, 3},
		"redlock-extend, the suite stops":  {renews("redlock-extend"), suite, `the\s+machine paused for [\d.]+ s`, 3},
		"redisson, suite and servers stop": {renews("redisson"), machine, `the\s+machine paused for [\d.]+ s`, 3},
		"rueidislock, the suite stops":     {renews("rueidislock"), suite, `the\s+machine paused for [\d.]+ s`, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live.Again(t, func(int) string {
				out, code := during(t, c.args, c.do)
				if code == cli.Inconclusive && code != c.code {
					return "no attempt was left alone"
				}
				if code != c.code || !regexp.MustCompile(c.want).MatchString(out) {
					t.Errorf("got exit code %d, want %d and %q:\n%s", code, c.code, c.want, out)
				}
				return ""
			})
		})
	}
}

// undisturbed is a run without faults, and with so many attempts.
func undisturbed(attempts string) []string {
	return []string{"verify", "--topology", "single", "--fault", "none", "--attempts", attempts, "--duration", "4s"}
}

// renews is a run of a lock that is renewed, with visits longer than the time for which the suite stops.
func renews(lock string) []string {
	return []string{"verify", "--topology", "single", "--lock", lock, "--fault", "none", "--lease", "1500ms", "--hold",
		"3s", "--attempts", "1", "--duration", "7s"}
}

func send(t *testing.T, s syscall.Signal, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil {
			t.Errorf("send %v to %d: %v", s, pid, err)
		}
	}
}

// The function during runs a command, and calls do when the command reports its first visits. It returns the output
// and the exit code.
func during(t *testing.T, args []string, do func(t *testing.T, suite int, servers []int)) (string, int) {
	t.Helper()
	tmp := t.TempDir()
	out, err := os.Create(filepath.Join(tmp, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	printed := func() string {
		text, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	c := exec.Command(linked(t, args[0]), append(args[1:], "--warmup", "0s", "--workers", "4", "--backoff", "10ms",
		"--patience", "1s", "--out", t.TempDir())...)
	c.Env, c.Stdout, c.Stderr = append(os.Environ(), "TMPDIR="+tmp), out, out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	live.Wait(t, "the first visits", func() bool { return strings.Contains(printed(), " visits (") })
	do(t, c.Process.Pid, scripts.ServersUnder(tmp)) // that of the lock, and that of the counter
	err = c.Wait()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return printed(), c.ProcessState.ExitCode()
}
