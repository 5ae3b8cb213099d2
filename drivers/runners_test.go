package drivers_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hammerlock/internal/live"
)

// TestLiveInTheUsersRunner runs the examples of contract tests in unittest and node:test: the right lock passes, and
// the test of the scenario that shows what is wrong with the other one fails.
func TestLiveInTheUsersRunner(t *testing.T) {
	t.Parallel()
	verify := filepath.Join(t.TempDir(), "verify")
	if text, err := exec.Command("go", "build", "-o", verify, "../cmd/verify").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
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
				text, err := inRunner(r.dir, verify, r.right)
				if strings.Contains(text, "undecided: ") {
					return text
				}
				if name == "python" && err != nil || name == "node" && !strings.Contains(text, "\nok 1 - Lock") {
					t.Errorf("the right lock: %v: %s", err, text)
				}
				return ""
			})
			live.Again(t, func(int) (undecided string) {
				text, err := inRunner(r.dir, verify, r.wrong)
				if err == nil || !strings.Contains(text, r.caught) || !strings.Contains(text, "foreign-release") {
					return text
				}
				return ""
			})
		})
	}
}

func inRunner(dir, verify string, words []string) (string, error) {
	c := exec.Command(words[0], words[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), "HAMMERLOCK="+verify, "PYTHONDONTWRITEBYTECODE=1")
	text, err := c.CombinedOutput()
	return string(text), err
}
