package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"hammerlock/internal/cli"
	"hammerlock/internal/scripts"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"bench": main, "verify": verify}) }

// verify is the other command: a person goes from one to the other.
func verify() {
	os.Exit(cli.Verify(context.Background(), cli.Env{
		Args: os.Args[1:], Stdin: os.Stdin, Getenv: os.Getenv, Stdout: os.Stdout, Stderr: os.Stderr,
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
