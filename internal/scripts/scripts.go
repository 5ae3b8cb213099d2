// Package scripts runs the suite's commands in test scripts, as a user would. Only tests use it.
package scripts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	signals "os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"hammerlock/internal/live"
)

// Run runs the scripts in testdata. Every script should leave no server and no directory.
func Run(t *testing.T) {
	t.Parallel()
	HearHangups()
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			// Nodes run below this temporary directory, so that each script can count its own.
			e.Setenv("TMPDIR", filepath.Join(e.WorkDir, "tmp"))
			e.Setenv("BIN", filepath.SplitList(e.Getenv("PATH"))[0])
			e.Setenv("GORACE", os.Getenv("GORACE"))
			return os.Mkdir(filepath.Join(e.WorkDir, "tmp"), 0o755)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "says": says, "servers": servers, "signal": signal, "spoil": spoil,
		},
	})
}

// HearHangups lets the programs that tests start receive SIGHUP. If the tests run under nohup, the programs would
// otherwise inherit its setting, which ignores this signal.
func HearHangups() {
	if signals.Ignored(unix.SIGHUP) {
		signals.Notify(make(chan os.Signal, 1), unix.SIGHUP)
	}
}

// inconclusive is the exit code of a run without a verdict: too little was seen, or the machine was paused.
const inconclusive = 3

// exits CODE PROGRAM ARGS... runs a program and expects its exit code, or one of several: 0,3. If the program is
// inconclusive and another code is expected, it is run again.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code program args...")
	}
	want, got := strings.Split(args[0], ","), 0
	for range live.Attempts {
		err := ts.Exec(args[1], args[2:]...)
		exit, ok := errors.AsType[*exec.ExitError](err)
		if got = 0; ok {
			got = exit.ExitCode()
		} else {
			ts.Check(err)
		}
		if slices.Contains(want, strconv.Itoa(got)) {
			return
		}
		if got != inconclusive {
			break
		}
	}
	ts.Fatalf("exit code %d, want %s", got, args[0])
}

// until waits until a state is reached, or fails with the last state.
func until(ts *testscript.TestScript, reached func() (state string, ok bool)) {
	end, tick := time.NewTimer(live.Deadline), time.NewTicker(10*time.Millisecond)
	defer end.Stop()
	defer tick.Stop()
	for {
		state, ok := reached()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-end.C:
			ts.Fatalf("not within %v: %s", live.Deadline, state)
		}
	}
}

// says FILE PATTERN waits until a file, often a background program's output, matches the pattern.
func says(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: says file pattern")
	}
	pattern, err := regexp.Compile(args[1])
	ts.Check(err)
	until(ts, func() (string, bool) {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		return fmt.Sprintf("%s has %q (%v), want %q", args[0], text, err, args[1]), err == nil && pattern.Match(text)
	})
}

// servers N waits until N servers of this script are alive; with 0, also until their directories are gone.
func servers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: servers count")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	tmp := ts.Getenv("TMPDIR")
	until(ts, func() (string, bool) {
		alive := ServersUnder(tmp)
		dirs, _ := filepath.Glob(filepath.Join(tmp, "hammerlock-*"))
		return fmt.Sprintf("servers %v alive, directories %v, want %d", alive, dirs, want), len(alive) == want &&
			(want > 0 || len(dirs) == 0)
	})
}

// signal NAME sends a signal, such as TERM, to the background programs.
func signal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || unix.SignalNum("SIG"+args[0]) == 0 {
		ts.Fatalf("usage: signal NAME")
	}
	for _, c := range ts.BackgroundCmds() {
		ts.Check(c.Process.Signal(unix.SignalNum("SIG" + args[0])))
	}
}

// ServersUnder returns the processes whose working directory is below the given one.
func ServersUnder(dir string) (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if cwd, err := os.Readlink(link); err == nil && strings.HasPrefix(cwd, dir+"/hammerlock-") {
			if pid, err := strconv.Atoi(strings.Split(link, "/")[2]); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// spoil FILE OFFSET changes one byte of a file; spoil FILE cuts off its last third.
func spoil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: spoil file [offset]")
	}
	path := ts.MkAbs(args[0])
	text, err := os.ReadFile(path)
	ts.Check(err)
	if len(args) == 1 {
		ts.Check(os.WriteFile(path, text[:len(text)*2/3], 0o644))
		return
	}
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	text[at] ^= 0x10
	ts.Check(os.WriteFile(path, text, 0o644))
}
