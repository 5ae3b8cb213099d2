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
// inconclusive, names what happened and accuses no lock. Attempts that follow are not disturbed, and pass.
func TestWhatNobodyPlanned(t *testing.T) {
	t.Parallel()
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
		code int
	}{
		"verify, servers die":              {undisturbed("1"), kill, `VERDICT +INCONCLUSIVE .*` + dead, 3},
		"verify, another attempt":          {undisturbed("4"), kill, `(?s)attempt 1 was inconclusive:.*` + dead + `.*VERDICT +PASS`, 0},
		"bench, servers die":               {[]string{"bench", "--topology", "single"}, kill, `SAFETY +INCONCLUSIVE .*` + dead, 3},
		"redlock-extend, the suite stops":  {renews("redlock-extend"), suite, `the\s+machine stood still for 1\.\d+ s`, 3},
		"redisson, suite and servers stop": {renews("redisson"), machine, `the\s+machine stood still for 1\.\d+ s`, 3},
		"rueidislock, the suite stops":     {renews("rueidislock"), suite, `the\s+machine stood still for 1\.\d+ s`, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, code := during(t, c.args, c.do)
			if code != c.code || !regexp.MustCompile(c.want).MatchString(out) {
				t.Errorf("got exit code %d, want %d and %q:\n%s", code, c.code, c.want, out)
			}
		})
	}
}

// undisturbed is a run without faults, and with so many attempts.
func undisturbed(attempts string) []string {
	return []string{"verify", "--topology", "single", "--fault", "none", "--attempts", attempts}
}

// renews is a run of a lock that is renewed, with visits longer than the time for which the suite stops.
func renews(lock string) []string {
	return []string{"verify", "--topology", "single", "--lock", lock, "--fault", "none", "--ttl", "500ms", "--hold", "1500ms", "--attempts", "1"}
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
