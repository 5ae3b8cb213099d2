package hammertest

import (
	"os"
	"testing"

	"hammerlock/explore"
	"hammerlock/internal/crew"
	"hammerlock/locks"
	"hammerlock/workload"
)

// stdout is the standard output of the process; nil if Main was not called.
var stdout *os.File

// Main runs the tests of a package, as m.Run does, and returns the exit code, which you may ignore. It lets the tests
// start their own binary again, as a worker process or an explorer. The new processes inherit the environment, but
// not the flags.
func Main(m *testing.M) int {
	stdout = os.Stdout
	if child() {
		os.Stdout = os.Stderr // for messages of the test program
	}
	return m.Run()
}

// child tells whether this process was started by Verify or Explore in another process.
func child() bool {
	last := os.Args[len(os.Args)-1]
	return len(os.Args) > 2 && (last == crew.Command || last == explore.Command)
}

// childArgs returns the arguments of a child process. The child runs one test again, up to the call of Verify or
// Explore with the lock of that name.
func childArgs(name string) []string { return []string{"-test.run=" + exactly(name), name} }

// serve makes a child process do its work, if this is the call of Verify or Explore for which it was started. The
// rest of the test is not run.
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
