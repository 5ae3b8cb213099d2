// Package live is what tests share that run real servers and processes: they wait for states, never for times, and ask
// again where the machine, not the product, kept a run from saying anything.
package live

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// Deadline bounds every wait of a live test. It is there to end a test that hangs; no test may expect to reach it.
const Deadline = time.Minute

// Attempts is how often a live test asks while the answer is undecided.
const Attempts = 5

const interval = 5 * time.Millisecond

// Wait waits until a state is reached. A test that does not reach it within the Deadline has failed; what names the
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

// Again carries an attempt out until one is decided, Attempts times at most. An attempt says why it is undecided: what
// the machine did meanwhile (a pause, a lease that was over before it could be used), so that the run says nothing
// about the product. Empty means decided. A wrong answer is no such reason: it fails the test at once. The number
// counts from 0, for names of keys. A machine of CI has to be quiet enough for an answer. Any other may be too busy for
// it, and then the test is left out: it has found nothing wrong.
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

// Nightly tells whether a test tries everything of a kind: at other times one of each stands for the others.
func Nightly() bool { return os.Getenv("NIGHTLY") != "" }

// Need leaves a test out where something is missing that it needs, and names it; a machine of CI must have it.
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

// Python is an interpreter that has a module, which a test needs.
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
