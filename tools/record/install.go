package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// nodeFolder returns the folder in which npm installs a release. record/node/package.json has an alias for each
// release, so that npm can install several.
func nodeFolder(name, version string) string {
	return "record/node/node_modules/" + name + "-" + version
}

// build builds a driver in Go. For other languages it does nothing; the command "make record-deps" installs their
// packages.
func (j job) build(ctx context.Context) error {
	if j.Language != "Go" {
		return nil
	}
	dir := filepath.Join(built, "src", j.name())
	if err := j.copySources(dir); err != nil {
		return err
	}
	pinned := filepath.Join("record/go", j.Name, j.Version)
	if _, err := os.Stat(pinned + ".mod"); errors.Is(err, os.ErrNotExist) {
		if err := j.pin(ctx, dir, pinned); err != nil {
			return err
		}
	}
	for _, kind := range []string{".mod", ".sum"} {
		if err := copyFile(pinned+kind, filepath.Join(dir, "go"+kind)); err != nil {
			return err
		}
	}
	binary, err := filepath.Abs(filepath.Join(built, j.name()))
	if err != nil {
		return err
	}
	return j.run(ctx, dir, "build", "-o", binary, ".")
}

// copySources copies the driver's files and drivers/go/main.go, the protocol code of all Go drivers, to dir.
func (j job) copySources(dir string) error {
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(j.driver(), "*.go"))
	if err != nil {
		return err
	}
	for _, file := range append(files, "drivers/go/main.go") {
		if slices.Contains(j.Without, filepath.Base(file)) {
			continue
		}
		if err := copyFile(file, filepath.Join(dir, filepath.Base(file))); err != nil {
			return err
		}
	}
	return nil
}

// pin is for a release without a saved go.mod. It lets Go choose the versions of the modules that the release needs,
// and saves go.mod and go.sum.
func (j job) pin(ctx context.Context, dir, pinned string) error {
	if err := os.MkdirAll(filepath.Dir(pinned), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module driver\n\ngo 1.26.0\n"), 0o644); err != nil {
		return err
	}
	get := append([]string{"get", j.Package + "@" + j.Version}, j.With...)
	if err := errors.Join(j.run(ctx, dir, get...), j.run(ctx, dir, "mod", "tidy", "-e")); err != nil {
		return err
	}
	return errors.Join(copyFile(filepath.Join(dir, "go.mod"), pinned+".mod"),
		copyFile(filepath.Join(dir, "go.sum"), pinned+".sum"))
}

func (j job) run(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-p=2")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: go %s: %w\n%s", j.name(), strings.Join(args, " "), err, out)
	}
	return nil
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}
