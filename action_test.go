package hammerlock_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"hammerlock/internal/live"
)

const (
	verified = "verify --strict --topology single,replica --quiet --out REPORT/verify"
	compared = "; bench ab bench=BASE/bin/bench bench=ROOT/bin/bench --workers 1 " +
		"--gate cost.round_trips<+5% --gate cost.commands<+5% --quiet --out REPORT/ab"
)

// actionCases are inputs of the action, with the commands that it calls and its exit code.
var actionCases = map[string]struct {
	inputs        map[string]string
	verify, bench string // exit codes of the commands
	calls, code   string
}{
	"no base":     {verify: "0", calls: verified, code: "0"},
	"a violation": {verify: "1", calls: verified, code: "1"},
	"nothing worse": {inputs: map[string]string{"base": "HEAD~1"}, verify: "0", bench: "0", calls: verified +
		compared, code: "0"},
	"a regression": {inputs: map[string]string{"base": "HEAD~1"}, verify: "0", bench: "5", calls: verified +
		compared, code: "5"},
	"a violation first": {inputs: map[string]string{"base": "HEAD~1"}, verify: "1", bench: "5", calls: verified +
		compared, code: "1"},
	"inconclusive": {
		inputs: map[string]string{"base": "HEAD~1"}, verify: "3", bench: "5", calls: verified + compared, code: "3",
	},
	"no such base": {inputs: map[string]string{"base": "0123456789abcdef0123456789abcdef01234567"}, verify: "0",
		calls: verified, code: "4"},
	"a driver": {inputs: map[string]string{"driver": "node lock.js a", "build": "echo \"build in $(basename " +
		"$PWD)\" >> \"$CALLS\""}, verify: "0",
		calls: "build in work; verify --strict --lock exec:node lock.js a --quiet --out REPORT/verify", code: "0"},
	"a driver's gates": {inputs: map[string]string{"driver": "node lock.js", "base": "HEAD~1"},
		verify: "0", bench: "0",
		calls: "verify --strict --lock exec:node lock.js --quiet --out REPORT/verify; " +
			"bench ab lock=exec:env -C BASE node lock.js lock=exec:node lock.js --workers 1 --gate " +
			"cost.commands<+5% --quiet --out REPORT/ab", code: "0"},
	"a driver and a base": {inputs: map[string]string{"driver": "node lock.js", "build": "echo \"build in " +
		"$(basename $PWD)\" >> \"$CALLS\"",
		"base": "HEAD~1", "verify": "--topology single", "ab": "--pairs 9"}, verify: "0", bench: "5",
		calls: "build in work; verify --strict --topology single --lock exec:node lock.js --quiet --out " +
			"REPORT/verify; build in base; bench ab lock=exec:env -C BASE node lock.js lock=exec:node lock.js " +
			"--pairs 9 --quiet --out REPORT/ab", code: "5"},
	"a driver that is not ready": {
		inputs: map[string]string{"driver": "node lock.js", "build": "false"}, code: "4",
	},
	"services": {inputs: map[string]string{"plan": "my plan.yaml"}, verify: "1", calls: "verify --strict --plan " +
		"my plan.yaml --quiet --out REPORT/verify", code: "1"},
	"a plan has no base": {inputs: map[string]string{"plan": "p.yaml", "base": "HEAD~1"}, verify: "0",
		calls: "verify --strict --plan p.yaml --quiet --out REPORT/verify", code: "4"},
	"a Go package": {inputs: map[string]string{"test": "./lock ./other"}, calls: "go test ./lock " +
		"./other in TREE/go.work", code: "0"},
	"tests and a plan": {inputs: map[string]string{"test": "./...", "plan": "p.yaml"}, verify: "3",
		calls: "go test ./... in TREE/go.work; verify --strict --plan p.yaml --quiet --out REPORT/verify",
		code:  "3"},
	"tests that fail": {
		inputs: map[string]string{"test": "./fails"}, calls: "go test ./fails in TREE/go.work", code: "1",
	},
	"flags, no shell": {inputs: map[string]string{"verify": "--lock $(touch${IFS}hacked);touch hacked *"},
		verify: "0",
		calls:  "verify --strict --lock $(touch${IFS}hacked);touch hacked * --quiet --out REPORT/verify",
		code:   "0"},
}

// TestTheAction runs the steps of action.yml in order, as GitHub's runner does, in a clone of a repository. The
// shell, git and the scripts in .ci are real. The commands that "go build" makes are stand-ins: they record their
// arguments and end with the exit code that the case wants.
func TestTheAction(t *testing.T) {
	for name, c := range actionCases {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t, "VERIFY_ENDS="+c.verify, "BENCH_ENDS="+c.bench)
			r.git("commit", "--quiet", "--allow-empty", "-m", "the change")
			failed := r.run(c.inputs)
			if got := r.calls(); got != c.calls {
				t.Errorf("called\n%s\nwant\n%s", got, c.calls)
			}
			if got := r.values["steps.judge.outputs.exit-code"]; got != c.code || failed != (c.code != "0") {
				t.Errorf("got exit code %q, failed %v, want %s", got, failed, c.code)
			}
			if left := r.git("worktree", "list"); strings.Count(left, "\n") != 1 {
				t.Errorf("the base's tree was left behind:\n%s", left)
			}
			if _, err := os.Stat(filepath.Join(r.root, "hacked")); err == nil {
				t.Error("a flag was run as a command")
			}
		})
	}
}

// TestTheActionOnTheTemplate runs .ci/pull-request with its defaults, in a new repository whose driver is the
// shipped template. It must pass. If release compares the token and deletes the key in two steps, it must fail. The
// environment makes the runs short. The comparison with a base takes 18 runs, so it is only made at night.
func TestTheActionOnTheTemplate(t *testing.T) {
	const script = `redis("EVAL", IF_OURS % '"DEL", KEYS[1]', 1, key, token)`
	right := read(t, "drivers/python/template.py")
	wrong := strings.Replace(right, script,
		`redis("EVAL", IF_OURS % '"EXISTS", KEYS[1]', 1, key, token) and redis("DEL", key)`, 1)
	if right == wrong {
		t.Fatal("the template releases otherwise")
	}
	base := ""
	if live.Nightly() {
		base = "HEAD~1"
	}
	for _, c := range []struct{ driver, base, scenario, want string }{
		{right, base, "contention", "exit code 0"},
		{wrong, "", "late-commands", "exit code 1"},
	} {
		live.Again(t, func(int) string {
			out := pullRequest(t, c.driver, c.base, c.scenario)
			if strings.Contains(out, "exit code 3") {
				return out
			}
			if !strings.Contains(out, c.want) {
				t.Fatalf("%s: want %s:\n%s", c.scenario, c.want, out)
			}
			return ""
		})
	}
}

// pullRequest returns the output of .ci/pull-request in a new repository with a driver. Only the last commit is
// newer than the base.
func pullRequest(t *testing.T, driver, base, scenario string) string {
	t.Helper()
	script, err := filepath.Abs(".ci/pull-request")
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{t: t, root: t.TempDir(), env: append(os.Environ(), "DRIVER=python3 driver.py", "TMPDIR="+t.TempDir(),
		"HAMMERLOCK_SCENARIO="+scenario, "HAMMERLOCK_SHOW=cost.commands", "HAMMERLOCK_PAIRS=6",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")}
	r.write(filepath.Join(r.root, "driver.py"), driver)
	r.git("init", "--quiet")
	r.git("add", "--all")
	r.git("commit", "--quiet", "-m", "the base")
	r.git("commit", "--quiet", "--allow-empty", "-m", "the change")
	cmd := exec.Command(script, strings.Fields(base)...)
	cmd.Dir, cmd.Env = r.root, r.env
	out, _ := cmd.CombinedOutput() // it says its exit code
	return string(out)
}

// runner is as much of a runner of GitHub's as composite actions need.
type runner struct {
	t         *testing.T
	root, bin string // the clone, and what stands before everything else on the path
	env       []string
	values    map[string]string // of expressions
}

// fakeGo builds what notes its call; a server is there, so nothing is installed.
const fakeGo = `#!/bin/sh
case $1 in
list) exit 1 ;; # no module knows hammerlock
work) exit 0 ;;
test)
	echo "go $* in $GOWORK" >> "$CALLS"
	[ "$2" != ./fails ]
	exit
	;;
esac
for command in bench verify; do
	ends=$(echo "$command" | tr a-z A-Z)_ENDS
	printf '#!/bin/sh\necho "%s $*" >> "$CALLS"\nexit "$%s"\n' "$command" "$ends" > "bin/$command"
	chmod 755 "bin/$command"
done
`

func newRunner(t *testing.T, env ...string) *runner {
	t.Helper()
	dir := t.TempDir()
	r := &runner{t: t, root: filepath.Join(dir, "work"), bin: filepath.Join(dir, "bin")}
	for _, file := range []string{".ci/setup", ".ci/pull-request", "action.yml"} {
		r.write(filepath.Join(r.root, file), read(t, file))
	}
	r.write(filepath.Join(r.bin, "go"), fakeGo)
	r.write(filepath.Join(r.bin, "redis-server"), "#!/bin/sh\n")
	r.env = append(os.Environ(), append(env, "PATH="+r.bin+":"+os.Getenv("PATH"), "CALLS="+filepath.Join(dir, "calls"),
		"TMPDIR="+dir, "GITHUB_OUTPUT="+filepath.Join(dir, "output"), "GITHUB_WORKSPACE="+r.root,
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@b")...)
	r.git("init", "--quiet")
	r.git("add", "--all")
	r.git("commit", "--quiet", "-m", "the base")
	return r
}

func (r *runner) write(file, text string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

func (r *runner) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = r.root, r.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

// run carries out the steps of the runner's own shells, until one fails.
func (r *runner) run(inputs map[string]string) (failed bool) {
	r.t.Helper()
	var action struct {
		Inputs map[string]struct{ Default string }
		Runs   struct {
			Steps []struct {
				ID, Shell, Run string
				Env            map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(r.t, "action.yml")), &action); err != nil {
		r.t.Fatal(err)
	}
	r.values = map[string]string{"github.action_path": r.root + "/./", "github.workspace": r.root}
	for name, input := range action.Inputs {
		r.values["inputs."+name] = input.Default
	}
	for name, value := range inputs {
		r.values["inputs."+name] = value
	}
	for _, step := range action.Runs.Steps {
		if step.Run == "" || failed {
			continue
		}
		file := filepath.Join(r.bin, "step.sh")
		r.write(file, step.Run)
		cmd := exec.Command(step.Shell, "-e", file)
		cmd.Dir, cmd.Env = r.root, r.env
		for name, value := range step.Env {
			cmd.Env = append(cmd.Env, name+"="+r.expand(value))
		}
		out, err := cmd.CombinedOutput()
		r.t.Logf("%s%v", out, err)
		failed = err != nil
		r.outputs(step.ID)
	}
	return failed
}

var expression = regexp.MustCompile(`\$\{\{ *(\S+) *\}\}`)

func (r *runner) expand(text string) string {
	return expression.ReplaceAllStringFunc(text, func(e string) string {
		value, known := r.values[expression.FindStringSubmatch(e)[1]]
		if !known {
			r.t.Errorf("the runner knows no %s", e)
		}
		return value
	})
}

// outputs reads what a step has handed on.
func (r *runner) outputs(id string) {
	text, _ := os.ReadFile(filepath.Join(filepath.Dir(r.bin), "output")) // absent until a step writes it
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && id != "" {
			r.values["steps."+id+".outputs."+name] = value
		}
	}
}

// calls are the commands' calls, with names for the directories in them.
func (r *runner) calls() string {
	text, _ := os.ReadFile(filepath.Join(filepath.Dir(r.bin), "calls")) // absent if nothing was called
	said := regexp.MustCompile(regexp.QuoteMeta(filepath.Dir(r.root))+`/tmp\.\w+`).ReplaceAllString(
		string(text), "TREE")
	said = strings.ReplaceAll(said, "TREE/base", "BASE")
	said = strings.ReplaceAll(said, r.root+"/hammerlock-report", "REPORT")
	return strings.ReplaceAll(strings.TrimSpace(strings.ReplaceAll(said, r.root, "ROOT")), "\n", "; ")
}
