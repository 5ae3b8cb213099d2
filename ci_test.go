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

// TestNoticesOfAllThatIsLinked: archives and images carry the licences of others.
func TestNoticesOfAllThatIsLinked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "NOTICES")
	if out, err := exec.Command("sh", ".ci/notices", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text := read(t, file)
	for _, want := range []string{
		"Leon Sorokin", "The Go Authors", "github.com/redis/go-redis/v9 v", "modernc.org/sqlite v", "s2/LICENSE",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no word of %s", want)
		}
	}
	for _, carrier := range []string{".goreleaser.yaml", "Dockerfile"} {
		if !strings.Contains(read(t, carrier), "NOTICES") {
			t.Errorf("%s does not carry them", carrier)
		}
	}
}

// TestFilesForOthersAreMeant reads what only other programs read: their syntax, and every command in them.
func TestFilesForOthersAreMeant(t *testing.T) {
	for _, file := range []string{"action.yml", ".github/dependabot.yml", ".github/workflows/pull-request.yml",
		".github/workflows/test.yml", ".github/workflows/nightly.yml", ".github/workflows/release.yml",
		".github/ISSUE_TEMPLATE/verdict.yml", ".github/ISSUE_TEMPLATE/bug.yml", ".github/ISSUE_TEMPLATE/lock.yml",
		".github/ISSUE_TEMPLATE/config.yml", ".goreleaser.yaml"} {
		var content map[string]any
		if err := yaml.Unmarshal([]byte(read(t, file)), &content); err != nil || len(content) == 0 {
			t.Errorf("%s: %v", file, err)
		}
		for _, m := range regexp.MustCompile(`uses: ([^./\s].*)`).FindAllStringSubmatch(read(t, file), -1) {
			if !regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40} # v[0-9.]+$`).MatchString(m[1]) {
				t.Errorf("%s: an action is named by its commit, with its version as a comment: %s", file, m[1])
			}
		}
	}
}

// TestTheActionIsMeant reads action.yml, and the script that it calls.
func TestTheActionIsMeant(t *testing.T) {
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
	script := read(t, ".ci/pull-request")
	shell(t, script)
	for _, m := range regexp.MustCompile(`(?m)gates='(.+)'`).FindAllStringSubmatch(script, -1) {
		mustBeValid(t, cli.Bench, "ab lock=lease lock=watch "+m[1])
		for gate := range strings.SplitSeq(m[1], "--gate ") {
			if gate = strings.TrimSpace(gate); !strings.Contains(text, gate) ||
				!strings.Contains(read(t, "docs/ci.md"), gate) {
				t.Errorf("action.yml or docs/ci.md does not name the gate %q of .ci/pull-request", gate)
			}
		}
	}
	if own := regexp.MustCompile(`verify='(.+)'`).FindStringSubmatch(script); own == nil ||
		!strings.Contains(text, own[1]+" if there is neither") {
		t.Errorf("action.yml does not name the flags of .ci/pull-request: %q", own)
	} else {
		mustBeValid(t, cli.Verify, own[1])
	}
	for _, input := range []string{"verify", "ab"} {
		if preset := action.Inputs[input].Default; preset != "" {
			t.Errorf("action.yml has a default of its own for %s, %q: .ci/pull-request has it", input, preset)
		}
	}
}

// TestTheGuideToCI holds docs/ci.md against the commands.
func TestTheGuideToCI(t *testing.T) {
	text := read(t, "docs/ci.md")
	for _, m := range regexp.MustCompile(`(?m)^    bin/bench (.*)$`).FindAllStringSubmatch(text, -1) {
		line := strings.NewReplacer("'", "", "base/bin/bench", "/bin/sh", "bench=bin/bench",
			"bench=/bin/sh").Replace(m[1])
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
	for pair, want := range map[string]string{"0 0": "0", "0 5": "5", "5 3": "3", "3 4": "4", "4 1": "1", "1 5": "1",
		"130 0": "130", "0 1": "1"} {
		out, err := exec.Command("sh", "-c", worse+"worse "+pair).Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("worse %s: got %s, %v, want %s", pair, got, err, want)
		}
	}
}

// TestTheCommentOfAPullRequest runs the commands in docs/ci.md that comment on a pull request. Stand-ins for gh and
// bench record their arguments.
func TestTheCommentOfAPullRequest(t *testing.T) {
	lines := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(read(t, "docs/ci.md"))[1]
	const list = "gh api repos/me/it/issues/7/comments --jq [.[] | select(.body | startswith(\"<!-- " +
		"hammerlock\")) | .id][0] // empty\n"
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
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
				os.WriteFile(path, []byte(script), 0o755)); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("sh", "-eu", "-c", lines)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "GITHUB_REPOSITORY=me/it",
			"PR=7", "OLD="+c.old)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		if got := read(t, filepath.Join(dir, "calls")); got != c.want {
			t.Errorf("%s: called\n%swant\n%s", name, got, c.want)
		}
	}
}

// TestSetup runs .ci/setup on simulated machines, on which only the shell is real. Each tool records how it was
// called. A package manager adds stand-ins for the programs that it installs.
func TestSetup(t *testing.T) {
	cases := map[string]struct {
		tools   string // what the machine has
		uid     string
		needs   string
		want    string // the calls that change something
		failure string
	}{
		"all there":      {tools: "apt-get redis-server gcc", needs: "redis cc"},
		"valkey will do": {tools: "apt-get valkey-server", needs: "redis"},
		"Debian, root": {tools: "apt-get", needs: "redis cc", want: "apt-get update; " +
			"apt-get install -y --no-install-recommends redis-server gcc libc6-dev"},
		"Debian, only redis": {tools: "apt-get gcc", needs: "redis cc", want: "apt-get update; " +
			"apt-get install -y --no-install-recommends redis-server"},
		"Debian, a person": {tools: "apt-get sudo", uid: "1000", needs: "redis",
			want: "sudo apt-get update; apt-get update; sudo env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get " +
				"install -y --no-install-recommends redis-server; " +
				"apt-get install -y --no-install-recommends redis-server"},
		"nobody may": {
			tools: "apt-get", uid: "1000", needs: "redis", failure: "needs root to run: apt-get update",
		},
		"Fedora":     {tools: "dnf", needs: "redis cc", want: "dnf install -y redis; dnf install -y gcc"},
		"Alpine":     {tools: "apk", needs: "redis cc", want: "apk add redis gcc musl-dev"},
		"macOS":      {tools: "brew gcc", uid: "501", needs: "redis cc", want: "brew install redis"},
		"no manager": {needs: "redis", failure: "no apt-get, dnf, apk or brew here"},
		"installs nought": {tools: "apk broken", needs: "redis", want: "apk add redis", failure: "still missing: " +
			"redis"},
		"a browser": {tools: "apt-get redis-server", needs: "redis chromium", want: "apt-get update; " +
			"apt-get install -y --no-install-recommends chromium fonts-dejavu-core"},
		"Chrome will do":  {tools: "apt-get google-chrome", needs: "chromium"},
		"Fedora, browser": {tools: "dnf", needs: "chromium", want: "dnf install -y chromium dejavu-sans-fonts"},
		"Alpine, browser": {tools: "apk", needs: "chromium", want: "apk add chromium font-dejavu"},
		"a balancer": {tools: "apt-get redis-server", needs: "redis nginx", want: "apt-get update; " +
			"apt-get install -y --no-install-recommends nginx-light"},
		"unknown need": {needs: "disk", failure: "disk: there is redis, cc, chromium, nginx, tmux, node, python, php"},
		"Debian, PHP": {tools: "apt-get", needs: "php", want: "apt-get update; " +
			"apt-get install -y --no-install-recommends php-cli " + lockedPackages(t, "php")},
		"other release": {tools: "apt-get other-release", needs: "php", want: "apt-get update; " +
			"apt-get install -y --no-install-recommends php-cli " + lockedPackages(t, "php") +
			"; apt-get install -y --no-install-recommends php-cli php-redis php-symfony-lock"},
		"Debian, beyond": {tools: "apt-get", needs: "postgres mariadb etcd",
			want: "apt-get update; apt-get install -y --no-install-recommends postgresql " +
				"mariadb-server-core etcd-server"},
		"Debian, drivers": {tools: "apt-get python3", needs: "node python",
			want: "python3 -c import redis; apt-get update; apt-get install -y --no-install-recommends nodejs npm; " +
				"python3 -c import redis"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			calls, out, err := runSetup(t, c.tools, c.uid, c.needs)
			if calls != c.want {
				t.Errorf("called %q, want %q", calls, c.want)
			}
			if (err != nil) != (c.failure != "") || !strings.Contains(out, c.failure) {
				t.Errorf("got %v and %q, want %q", err, out, c.failure)
			}
		})
	}
}

// fake is a tool: it notes its call; a package manager then provides what it was asked for.
const fake = `#!/bin/sh
me=${0##*/}
echo "$me $*" >> "$LOG"
case $me in
sudo) exec "$@" ;;
apt-get | dnf | apk | brew)
	[ ! -e "$BIN/broken" ] || exit 0
	case "$*" in *=*) [ ! -e "$BIN/other-release" ] || exit 100 ;; esac
	for p in "$@"; do
		case $p in redis | redis-server) : > "$BIN/redis-server"; chmod +x "$BIN/redis-server" ;;
		gcc | chromium | nodejs | npm) : > "$BIN/${p%js}"; chmod +x "$BIN/${p%js}" ;;
		nginx-light) : > "$BIN/nginx"; chmod +x "$BIN/nginx" ;;
		php-cli) : > "$BIN/php"; chmod +x "$BIN/php" ;;
		postgresql | mariadb-server-core | etcd-server)
			for p in postgres mariadbd etcd; do : > "$BIN/$p"; chmod +x "$BIN/$p"; done ;; esac
	done ;;
esac
`

// lockedPackages are those that a lock file of Debian packages names.
func lockedPackages(t *testing.T, driver string) string {
	t.Helper()
	_, lines, _ := strings.Cut(read(t, "drivers/"+driver+"/debian.lock"), "\n")
	return strings.Join(strings.Fields(lines), " ")
}

func runSetup(t *testing.T, tools, uid, needs string) (calls, out string, err error) {
	t.Helper()
	bin, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	if uid == "" {
		uid = "0"
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name := range strings.FieldsSeq(tools) {
		write(name, fake)
	}
	write("id", "#!/bin/sh\necho "+uid+"\n")
	write("go", "#!/bin/sh\necho gcc\n")
	for _, name := range []string{"sh", "sed", "tr", "cut", "env", "chmod"} {
		real, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(real, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(bin, "sh"), append([]string{".ci/setup"}, strings.Fields(needs)...)...)
	cmd.Env = []string{"PATH=" + bin, "BIN=" + bin, "SBIN=" + bin, "LOG=" + log}
	said, err := cmd.CombinedOutput()
	noted, _ := os.ReadFile(log) // absent if nothing was called
	return strings.ReplaceAll(strings.TrimSpace(string(noted)), "\n", "; "), string(said), err
}

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
		"as it says": {"Try\n\n    make bench   # builds it\n    bin/tool a \\\n      'b  c'   # exits 3\n\n```\n" +
			"    bin/never run\n```\n\n" +
			"Or `bin/tool plain`, and `make test`; `bin/tool` is a name.\n", true,
			[]string{"ok ", "exit 3    bin/tool a 'b  c'", "bin/tool plain", "skip", "4 commands, 0 failed"}},
		"should have failed": {
			"    make bench\n    bin/tool plain   # exits 1\n", false,
			[]string{"exit 0    bin/tool plain", "wanted exit 1", "2 commands, 1 failed"},
		},
		"should not have": {
			"    make bench\n    bin/tool a 'b  c'\n", false,
			[]string{"exit 3    bin/tool a 'b  c'", "got 2", "1 failed"},
		},
		"nothing to run": {"No commands.\n", false, []string{"no command in README.md"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"README.md": c.readme,
				"Makefile": "bench:\n\tmkdir -p bin && cp tool bin/tool\n", "tool": "#!/bin/sh\necho got $#\n" +
					"[ $# = 1 ] || exit 3\n"} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, args := range [][]string{{"init", "--quiet"}, {"add", "--all"},
				{"-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "a"}} {
				if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err !=
					nil {
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
