package hammerlock_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"hammerlock/internal/cli"
)

// TestFilesForOthersAreMeant reads what only other programs read: their syntax, and every command in them.
func TestFilesForOthersAreMeant(t *testing.T) {
	for _, file := range []string{"action.yml", ".github/workflows/pull-request.yml", ".github/workflows/test.yml",
		".github/workflows/nightly.yml", ".goreleaser.yaml"} {
		var content map[string]any
		if err := yaml.Unmarshal([]byte(read(t, file)), &content); err != nil || len(content) == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
	var action struct {
		Inputs map[string]struct{ Default string }
		Runs   struct {
			Using string
			Steps []struct{ Run, Shell, Uses string }
		}
	}
	text := read(t, "action.yml")
	if err := yaml.Unmarshal([]byte(text), &action); err != nil || action.Runs.Using != "composite" {
		t.Fatalf("%v: %+v", err, action)
	}
	for _, step := range action.Runs.Steps {
		if (step.Run == "") == (step.Uses == "") || step.Run != "" && step.Shell == "" {
			t.Errorf("a step runs nothing, or without a shell: %+v", step)
		}
		if strings.Contains(step.Run, "${{") {
			t.Errorf("a step builds its script of what others write: %s", step.Run)
		}
		shell(t, step.Run)
	}
	for _, m := range regexp.MustCompile(`inputs\.(\w+)`).FindAllStringSubmatch(text, -1) {
		if _, known := action.Inputs[m[1]]; !known {
			t.Errorf("action.yml: no input %s", m[1])
		}
	}
	mustBeValid(t, cli.Bench, "ab lock=lease lock=watch "+action.Inputs["ab"].Default)
	script := read(t, ".ci/pull-request")
	shell(t, script)
	if own := regexp.MustCompile(`verify='(.+)'`).FindStringSubmatch(script); own == nil || !strings.Contains(text, own[1]+" if there is neither") {
		t.Errorf("action.yml does not name the flags of .ci/pull-request: %q", own)
	} else {
		mustBeValid(t, cli.Verify, own[1])
	}
	for name, input := range map[string]string{"VERIFY": "verify", "AB": "ab"} {
		if preset := "${" + name + ":-" + action.Inputs[input].Default + "}"; !strings.Contains(script, preset) {
			t.Errorf(".ci/pull-request has another %s than action.yml: %s", name, preset)
		}
	}
}

// TestTheGuideToCI holds docs/ci.md against the commands.
func TestTheGuideToCI(t *testing.T) {
	text := read(t, "docs/ci.md")
	for _, m := range regexp.MustCompile(`(?m)^    bin/bench (.*)$`).FindAllStringSubmatch(text, -1) {
		line := strings.NewReplacer("'", "", "base/bin/bench", "/bin/sh", "bench=bin/bench", "bench=/bin/sh").Replace(m[1])
		mustBeValid(t, cli.Bench, line)
	}
	if !strings.Contains(text, "hammerlock@v1") || strings.Count(text, "```")%2 != 0 {
		t.Error("docs/ci.md lacks the workflow")
	}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1) {
		var content map[string]any
		if err := yaml.Unmarshal([]byte(block[1]), &content); err != nil {
			t.Errorf("docs/ci.md: %v in\n%s", err, block[1])
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// shell lets a shell read a script without running it.
func shell(t *testing.T, script string) {
	t.Helper()
	cmd := exec.Command("sh", "-n")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s\n%s", err, out, script)
	}
}

// TestTheWorseCodeCounts asks the script of pull requests.
func TestTheWorseCodeCounts(t *testing.T) {
	script := read(t, ".ci/pull-request")
	worse := regexp.MustCompile(`(?s)worse\(\) \{.*?\n\}\n`).FindString(script)
	for pair, want := range map[string]string{"0 0": "0", "0 5": "5", "5 3": "3", "3 4": "4", "4 1": "1", "1 5": "1", "130 0": "130", "0 1": "1"} {
		out, err := exec.Command("sh", "-c", worse+"worse "+pair).Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("worse %s: got %s, %v, want %s", pair, got, err, want)
		}
	}
}

// TestTheCommentOfAPullRequest runs the lines of docs/ci.md that write one, with stand-ins for gh and bench that note their arguments.
func TestTheCommentOfAPullRequest(t *testing.T) {
	lines := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(read(t, "docs/ci.md"))[1]
	const list = "gh api repos/me/it/issues/7/comments --jq [.[] | select(.body | startswith(\"<!-- hammerlock\")) | .id][0] // empty\n"
	for name, c := range map[string]struct{ old, want string }{
		"the first": {"", list + "gh api repos/me/it/issues/7/comments -F body=@comment.md\n"},
		"another":   {"42", list + "gh api -X PATCH repos/me/it/issues/comments/42 -F body=@comment.md\n"},
	} {
		dir := t.TempDir()
		for file, script := range map[string]string{
			"gh":        "#!/bin/sh\necho \"gh $*\" >> calls\ncase $* in *--jq*) echo $OLD ;; esac\n",
			"bin/bench": "#!/bin/sh\n[ \"$1 $4 $5\" = 'ab --markdown comment.md' ]\n",
		} {
			path := filepath.Join(dir, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(script), 0o755)); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("sh", "-eu", "-c", lines)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "GITHUB_REPOSITORY=me/it", "PR=7", "OLD="+c.old)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		if got := read(t, filepath.Join(dir, "calls")); got != c.want {
			t.Errorf("%s: called\n%swant\n%s", name, got, c.want)
		}
	}
}
