package hammerlock_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// commandModules is how many modules the commands are linked with: 18 of them are the SDK of OpenTelemetry's.
const commandModules = 72

// TestBeyondStaysOutside: the clients of servers other than Redis are dependencies of the module beyond, and not of
// this module.
func TestBeyondStaysOutside(t *testing.T) {
	required := func(path string) (list []string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := modfile.Parse(path, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range f.Require {
			list = append(list, r.Mod.Path)
		}
		return list
	}
	own, theirs := required("go.mod"), required("beyond/go.mod")
	for _, client := range []string{"github.com/jackc/pgx/v5", "github.com/go-sql-driver/mysql"} {
		if slices.Contains(own, client) || !slices.Contains(theirs, client) {
			t.Errorf("%s is to be required by beyond alone", client)
		}
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./cmd/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	used := strings.Fields(string(out))
	slices.Sort(used)
	if used = slices.Compact(used); len(used) > commandModules {
		t.Errorf("the commands are linked with %d modules, want at most %d: %v", len(used), commandModules, used)
	}
}

// TestOwnLock runs the tests of the module examples/own-lock. It uses only downloaded dependencies, and the flags of
// this build, because with other flags all dependencies would be compiled again. With -short the tests are shorter,
// too.
func TestOwnLock(t *testing.T) {
	t.Parallel()
	args := []string{"test", "-C", "examples/own-lock", "-count", "1"}
	if testing.Short() {
		args = append(args, "-short")
	}
	cmd := exec.Command("go", append(args, "./...")...)
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=readonly", "GOWORK=off")
	alone := exec.Command("go", "vet", "ownlock.go", "ownlock_test.go") // what is copied
	alone.Dir, alone.Env = "examples/own-lock", cmd.Environ()
	if out, err := alone.CombinedOutput(); err != nil {
		t.Errorf("the lock and its test do not compile without the other files: %v\n%s", err, out)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestManifests runs the tests of the module deploy/check, which uses the types of Kubernetes and Compose. It takes
// half a minute to compile, so -short leaves it out.
func TestManifests(t *testing.T) {
	if testing.Short() {
		t.Skip("the types of Kubernetes take half a minute to compile")
	}
	t.Parallel()
	in := func(args ...string) ([]byte, error) {
		cmd := exec.Command("go", args...)
		cmd.Dir = "deploy/check"
		cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=readonly", "GOWORK=off")
		return cmd.CombinedOutput()
	}
	if out, err := in("mod", "download"); err != nil {
		t.Skipf("the types of Kubernetes cannot be downloaded: %v\n%s", err, out)
	}
	if out, err := in("test", "-count", "1", "./..."); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestHome gives a copy of the tree another module path, as on the day when the repository becomes public. Then the
// old path must not occur any more.
func TestHome(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a copy of the tree again")
	}
	t.Parallel()
	const home = "example.org/acme/lock-lab"
	dir := copyOfTheTree(t)
	in(t, dir, "git init -q && git add -A")
	in(t, dir, "! .ci/home hammerlock && ! .ci/home https://"+home)
	in(t, dir, ".ci/home "+home)
	in(t, dir, "! git grep -nE '(^|[^A-Za-z0-9_./-])"+module+"/(history|internal|locks|[.]{3})' -- '*.go' "+
		"'*.mod' '*.patch' .ci")
	in(t, dir, "go vet ./history && go list -deps -test ./... && go -C beyond list -deps ./... "+
		"&& go -C examples/own-lock list -deps -test ./...")
	in(t, dir, "grep -q '`go get "+home+"`' README.md")
}
