package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"hammerlock/internal/cli"
	"hammerlock/internal/scripts"
)

func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){"bench": main, "verify": verify})
}

// The type suite runs all tests of the package. They share one binary of the program, built as users build it.
// Measurements, and tests at a terminal, must not use a binary with the race detector, even if the tests themselves
// have it.
type suite struct{ *testing.M }

// built is where the program is; build makes it when the first test needs it.
var (
	built     string
	buildOnce = sync.OnceValues(func() ([]byte, error) {
		return exec.Command("go", "build", "-ldflags=-s -w", "-o", built, ".").CombinedOutput()
	})
)

func (s suite) Run() int {
	dir, err := os.MkdirTemp("", "bench-test-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	built = filepath.Join(dir, "bench")
	return s.M.Run()
}

func build(t *testing.T) string {
	t.Helper()
	if out, err := buildOnce(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return built
}

// verify is the other command: a person goes from one to the other.
func verify() {
	os.Exit(cli.Verify(context.Background(), cli.Env{
		Args: cli.Arguments(os.Args[1:]), Stdin: os.Stdin, Getenv: cli.Environment(), Stdout: os.Stdout,
		Stderr: os.Stderr,
	}))
}

// linked is this test's own program under a command's name, as TestMain goes by it.
func linked(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestScripts(t *testing.T) { scripts.Run(t) }
