package drivers_test

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"hammerlock/internal/cli"
	"hammerlock/internal/live"
)

// evil are the drivers that misbehave: the exit codes that a person may see of each, and what he is told.
var evil = map[string]struct {
	codes []int
	want  string
}{
	"right": {fine, "driver"}, "waits": {fine, "driver"}, "stubborn": {fine, "driver"}, "floods-err": {fine, "driver"},
	"ok-after-lost": {fine, "driver"},
	"no-hello":      {ended, "It must write {"}, "no-flush": {ended, "and flush its standard output"},
	"other-version": {ended, "this suite speaks protocol 1"},
	"dies-at-once":  {ended, "cannot import redis"}, "dies-opening": {ended, "ended unexpectedly (exit status 5)"},
	"dies-asked":   {failed, "the program that has the lock ended unexpectedly"},
	"dies-holding": {failed, "the program that has the lock ended unexpectedly"},
	"rejects":      {failed, "UnhandledPromiseRejection"},
	"hangs":        {ended, "it must answer while calls are under way"},
	"never-reads":  {ended, "has not answered a ping for"},
	"half-a-line":  {ended, "every message ends with one"}, "twice": {ended, "every request has one answer"},
	"unknown-id": {ended, "which was never sent"}, "others-id": {ended, "every request has one answer"},
	"garbage": {failed, "hung-call"}, "sleepy": {[]int{cli.Inconclusive}, "the driver, not the lock, was late"},
	"long-line": {ended, "a line of more than 64 KiB"}, "floods-out": {ended, "print to standard error"},
	"closes-out":   {ended, "closed its standard output"},
	"lost-unknown": {ended, "a hold is named by the id of its acquire"}, "negative": {ended, "valid_ms -5"},
	"huge":      {ended, "valid_ms 1e+15"},
	"undecided": {ended, "an answer says one of"},
}

// fine is of those that there is nothing to complain about; a busy machine proves nothing.
var (
	fine   = []int{cli.Passed, cli.Inconclusive}
	ended  = []int{cli.Broken}
	failed = []int{cli.Violation}
)

// TestEvilDrivers: verify ends in time, with a code that is no accusation, and says what is wrong.
func TestEvilDrivers(t *testing.T) {
	if testing.Short() {
		t.Skip("internal/driver has each of them, and cmd/verify some, with -short, too")
	}
	t.Parallel()
	for mode, w := range evil {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			length := "10m" // under calls it off before
			if !slices.Equal(w.codes, ended) {
				length = "3s" // in which a call that is not answered is a short one, too
			}
			code, said := under(t, cli.Verify, os.Args[0]+" evil "+mode, os.Getenv, "--duration", length)
			if !slices.Contains(w.codes, code) || !strings.Contains(said, w.want) {
				t.Errorf("exit code %d, want one of %v and %q:\n%s", code, w.codes, w.want, said)
			}
		})
	}
}

// TestBenchTakesADriver: so that its cost can be seen.
func TestBenchTakesADriver(t *testing.T) {
	t.Parallel()
	live.Again(t, func(int) (undecided string) {
		code, said := under(t, cli.Bench, os.Args[0]+" evil right", os.Getenv, "--duration", "300ms", "--warmup", "0s")
		if code == cli.Inconclusive {
			return said
		}
		if code != cli.Passed || !strings.Contains(said, "exec:evil-right@1") {
			t.Errorf("exit code %d\n%s", code, said)
		}
		return ""
	})
}

// TestAMissingFlushIsFound where the developer's own environment hides it.
func TestAMissingFlushIsFound(t *testing.T) {
	t.Parallel()
	hides := func(name string) string {
		return map[string]string{"PATH": os.Getenv("PATH"), "PYTHONUNBUFFERED": "1"}[name]
	}
	hello := `print("{\"hello\":\"hammerlock-driver\",\"protocol\":1,\"name\":\"x\",\"version\":\"1\"}"); ` +
		`import time; time.sleep(60)`
	code, said := under(t, cli.Verify, live.Python(t, "json")+" -c '"+hello+"'", hides)
	if code != cli.Broken || !strings.Contains(said, "and flush its standard output") {
		t.Errorf("exit code %d\n%s", code, said)
	}
}

// under runs a command with the driver, and returns the exit code and all output. A command that does not end is
// cancelled after live.Deadline.
func under(t *testing.T, command func(context.Context, cli.Env) int, driver string, getenv func(string) string,
	args ...string) (code int, said string) {
	t.Helper()
	args = append([]string{"--topology", "single", "--redis-server", "embedded", "--lock", "exec:" + driver,
		"--workers", "4", "--wait", "1s", "--ttl", "1s", "--fault", "none", "--out", t.TempDir()}, args...)
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), live.Deadline)
	defer cancel()
	code = command(ctx, cli.Env{Args: args, Getenv: getenv, Stdout: &out, Stderr: &out})
	return code, out.String()
}
