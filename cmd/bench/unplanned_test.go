package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"hammerlock/internal/scripts"
)

// TestWhatNobodyPlanned ends a server, or stops the suite for longer than a lease, in runs without faults: each ends
// inconclusive, names what happened and accuses no lock.
func TestWhatNobodyPlanned(t *testing.T) {
	kill := func(t *testing.T, _ int, servers []int) { send(t, syscall.SIGKILL, servers...) }
	stop := func(t *testing.T, all ...int) {
		send(t, syscall.SIGSTOP, all...)
		<-time.After(1200 * time.Millisecond)
		send(t, syscall.SIGCONT, all...)
	}
	suite := func(t *testing.T, suite int, _ []int) { stop(t, suite) }
	machine := func(t *testing.T, suite int, servers []int) { stop(t, slices.Concat([]int{suite}, servers)...) }
	dead := `ended by itself \(signal: killed\)`
	for name, c := range map[string]struct {
		args []string
		do   func(t *testing.T, suite int, servers []int)
		want string
	}{
		"verify, servers die":              {[]string{"verify", "--topology", "single", "--fault", "none"}, kill, `VERDICT +INCONCLUSIVE .*` + dead},
		"bench, servers die":               {[]string{"bench", "--topology", "single"}, kill, `SAFETY +INCONCLUSIVE .*` + dead},
		"redlock-extend, the suite stops":  {renews("redlock-extend"), suite, `the\s+machine stood still for 1\.\d+ s`},
		"redisson, suite and servers stop": {renews("redisson"), machine, `the\s+machine stood still for 1\.\d+ s`},
		"rueidislock, the suite stops":     {renews("rueidislock"), suite, `the\s+machine stood still for 1\.\d+ s`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, code := during(t, c.args, c.do)
			if code != 3 || !regexp.MustCompile(c.want).MatchString(out) {
				t.Errorf("got exit code %d, want 3 and %q:\n%s", code, c.want, out)
			}
		})
	}
}

// renews is a run of a lock that is renewed, with visits longer than the time for which the suite stops.
func renews(lock string) []string {
	return []string{"verify", "--topology", "single", "--lock", lock, "--fault", "none", "--ttl", "500ms", "--hold", "1500ms"}
}

func send(t *testing.T, s syscall.Signal, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil {
			t.Errorf("send %v to %d: %v", s, pid, err)
		}
	}
}

// during runs a command for three seconds, does something to it when it has worked for one, and returns what it printed
// and its exit code.
func during(t *testing.T, args []string, do func(t *testing.T, suite int, servers []int)) (string, int) {
	t.Helper()
	tmp := t.TempDir()
	var out bytes.Buffer
	c := exec.Command(linked(t, args[0]), append(args[1:], "--warmup", "0s", "--duration", "3s", "--workers", "4", "--retry", "10ms", "--wait", "1s", "--out", t.TempDir())...)
	c.Env, c.Stdout, c.Stderr = append(os.Environ(), "TMPDIR="+tmp), &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if len(scripts.ServersUnder(tmp)) == 2 { // that of the lock, and that of the counter
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	<-time.After(time.Second)
	do(t, c.Process.Pid, scripts.ServersUnder(tmp))
	err := c.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), c.ProcessState.ExitCode()
}
