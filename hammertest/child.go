package hammertest

import (
	"os"
	"testing"

	"hammerlock/explore"
	"hammerlock/internal/crew"
	"hammerlock/locks"
	"hammerlock/workload"
)

// stdout is that of the process; nil if Main was not called.
var stdout *os.File

// Main runs the tests of a package as m.Run does, and returns its code, which need not be used. It lets the tests start
// themselves again as a worker process, or as one that explores; flags are not handed on to these, the environment is.
func Main(m *testing.M) int {
	stdout = os.Stdout
	if child() {
		os.Stdout = os.Stderr // for what a test program says of itself
	}
	return m.Run()
}

// child tells whether this is a process that Verify or Explore has started.
func child() bool {
	last := os.Args[len(os.Args)-1]
	return len(os.Args) > 2 && (last == crew.Command || last == explore.Command)
}

// childArgs make the test program such a process: it runs the one test again, up to the call with the lock of that
// name.
func childArgs(name string) []string { return []string{"-test.run=" + exactly(name), name} }

// serve is what such a process does, if the call is the one that it was started for: nothing of the test follows.
func serve(t *testing.T, s locks.Spec) {
	t.Helper()
	n := len(os.Args)
	if os.Args[n-2] != s.Name {
		return
	}
	known := []locks.Spec{s}
	if os.Args[n-1] == explore.Command {
		explore.Serve(t, os.Stdin, stdout, known)
	} else if err := crew.Child(t.Context(), os.Stdin, stdout,
		crew.Catalogue{Locks: known, Counters: workload.AllCounters}); err != nil {
		t.Fatal(err)
	}
	t.SkipNow()
}
