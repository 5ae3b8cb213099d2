// Package live has helpers for tests with real servers and processes. They wait for states, not times, and repeat a run
// if the machine, not the product, made it undecided.
package live

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// Deadline bounds every wait of a live test. It only ends tests that hang.
const Deadline = time.Minute

// Attempts is how often a live test tries while the answer is undecided.
const Attempts = 5

const interval = 5 * time.Millisecond

// Wait waits until a state is reached. The test fails if that takes longer than Deadline. The argument what names the
// state.
func Wait(t testing.TB, what string, reached func() bool) {
	t.Helper()
	end, tick := time.NewTimer(Deadline), time.NewTicker(interval)
	defer end.Stop()
	defer tick.Stop()
	for !reached() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("not within %v: %s", Deadline, what)
		}
	}
}

// Again repeats an attempt until it is decided, at most Attempts times. An attempt returns why the machine made it
// undecided, for example "paused"; empty means decided. A wrong answer fails the test immediately. The argument n
// counts the attempts from 0, so that each can use its own keys. If all attempts are undecided, the test fails in CI,
// and is skipped on other machines, which may be busy.
func Again(t testing.TB, attempt func(n int) (undecided string)) {
	t.Helper()
	var undecided string
	for n := range Attempts {
		if undecided = attempt(n); undecided == "" {
			return
		}
		t.Logf("attempt %d of %d is undecided: %s", n+1, Attempts, undecided)
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("undecided after %d attempts: %s", Attempts, undecided)
	}
	t.Skipf("undecided after %d attempts: %s", Attempts, undecided)
}

// Nightly reports whether a test tries all variants; otherwise it tries one of each kind.
func Nightly() bool { return os.Getenv("NIGHTLY") != "" }

// Need skips the test if a requirement is missing; in CI it fails the test instead. The argument
// what names the requirement.
func Need(t testing.TB, there bool, what string) {
	t.Helper()
	switch {
	case there:
	case os.Getenv("CI") != "":
		t.Fatalf("%s is missing: make drivers", what)
	default:
		t.Skipf("%s is missing: make drivers", what)
	}
}

// Python returns an interpreter that has a module.
func Python(t testing.TB, module string) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import "+module).Run() == nil {
			return name
		}
	}
	Need(t, false, "python3 with "+module)
	return ""
}
