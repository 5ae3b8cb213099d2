package hammerlock_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadmeCheck lets .ci/readme-check run READMEs whose commands end as they say, and otherwise.
func TestReadmeCheck(t *testing.T) {
	script, err := filepath.Abs(".ci/readme-check")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		readme string
		ok     bool
		says   []string
	}{
		"as it says": {"Try\n\n    make bench   # builds it\n    bin/tool a \\\n      'b  c'   # exits 3\n\n```\n    bin/never run\n```\n\n" +
			"Or `bin/tool plain`, and `make test`; `bin/tool` is a name.\n", true,
			[]string{"ok ", "exit 3    bin/tool a 'b  c'", "bin/tool plain", "skip", "4 commands, 0 failed"}},
		"should have failed": {"    make bench\n    bin/tool plain   # exits 1\n", false, []string{"exit 0    bin/tool plain", "wanted exit 1", "2 commands, 1 failed"}},
		"should not have":    {"    make bench\n    bin/tool a 'b  c'\n", false, []string{"exit 3    bin/tool a 'b  c'", "got 2", "1 failed"}},
		"nothing to run":     {"No commands.\n", false, []string{"no command in README.md"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"README.md": c.readme,
				"Makefile": "bench:\n\tmkdir -p bin && cp tool bin/tool\n", "tool": "#!/bin/sh\necho got $#\n[ $# = 1 ] || exit 3\n"} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, args := range [][]string{{"init", "--quiet"}, {"add", "--all"},
				{"-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "a"}} {
				if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
					t.Fatalf("git %v: %v: %s", args, err, out)
				}
			}
			out, err := exec.Command(script, dir).CombinedOutput()
			if (err == nil) != c.ok {
				t.Errorf("got %v, want success %v", err, c.ok)
			}
			for _, want := range c.says {
				if !strings.Contains(string(out), want) {
					t.Errorf("it does not say %q", want)
				}
			}
			t.Logf("%s", out)
		})
	}
}
