package drivers_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"hammerlock/internal/live"
)

// TestLiveInTheUsersRunner runs the example contract tests in unittest and node:test. The tests of the correct lock
// pass. For the wrong lock, the test of the scenario that shows its mistake fails.
func TestLiveInTheUsersRunner(t *testing.T) {
	t.Parallel()
	verify := built(t)
	for name, r := range map[string]struct {
		dir          string
		right, wrong []string
		caught       string // of the wrong lock's test
	}{
		"python": {"python", []string{"python3", "-m", "unittest", "-v", "test_example.TestLock"},
			[]string{"python3", "-m", "unittest", "-v", "test_example.TestPlainDel"}, "FAIL: test_late_holder"},
		"node": {"node", []string{bareNode(t), "--test", "--test-name-pattern=Lock", "example.test.js"},
			[]string{bareNode(t), "--test", "example.test.js"}, "not ok 2 - late-holder"},
	} {
		t.Run(name, func(t *testing.T) {
			live.Again(t, func(int) (undecided string) {
				text, err := inRunner(t, r.dir, verify, r.right)
				if strings.Contains(text, "undecided: ") {
					return text
				}
				if name == "python" && err != nil || name == "node" && !strings.Contains(text, "\nok 1 - Lock") {
					t.Errorf("the right lock: %v: %s", err, text)
				}
				return ""
			})
			live.Again(t, func(int) (undecided string) {
				text, err := inRunner(t, r.dir, verify, r.wrong)
				if err == nil || !strings.Contains(text, r.caught) || !strings.Contains(text, "foreign-release") {
					return text
				}
				judgedAgain(t, text)
				return ""
			})
		})
	}
}

// keptRun is the command that a red test prints.
var keptRun = regexp.MustCompile(`judged again by: (.+)`)

// judgedAgain runs the command as it stands: the run was kept, and its verdict is the same.
func judgedAgain(t *testing.T, text string) {
	t.Helper()
	again := keptRun.FindStringSubmatch(text)
	if again == nil {
		t.Fatalf("no command that judges the run again:\n%s", text)
	}
	out, _ := exec.Command("sh", "-c", again[1]).CombinedOutput() // the exit code is the verdict's
	if !strings.Contains(string(out), "foreign-release") {
		t.Errorf("%s:\n%s", again[1], out)
	}
}

// built is the program verify.
func built(t *testing.T) string {
	t.Helper()
	verify := filepath.Join(t.TempDir(), "verify")
	if text, err := exec.Command("go", "build", "-o", verify, "../cmd/verify").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return verify
}

// inRunner runs a test of a user in a folder. Its kept runs live as long as the test.
func inRunner(t *testing.T, dir, verify string, words []string) (string, error) {
	t.Helper()
	python, err := filepath.Abs("python")
	temporary, failed := os.MkdirTemp("", "") // short, for a path of a socket has at most 107 bytes
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temporary) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Dir, c.WaitDelay = dir, time.Second
	c.Env = append(os.Environ(), "HAMMERLOCK="+verify, "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+python,
		"TMPDIR="+temporary)
	text, err := c.CombinedOutput()
	return string(text), err
}
