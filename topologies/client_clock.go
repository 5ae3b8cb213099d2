package topologies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// ClientClock is a wall clock for one program. A program that is started with Env reads it in place of the machine's
// clock if it asks the C library, as Python and Node do and Go does not. It is plain data: the program may be the child
// of another process.
type ClientClock struct {
	Library string // the library that the dynamic linker loads
	File    string // the file with the clock's offset
}

// clientClockDir is the directory of the clock's files in the deployment.
const clientClockDir = "client-clock"

// NoClientClock says why a program's clock cannot be set on this machine; empty if it can.
func NoClientClock() string {
	if runtime.GOOS != "linux" {
		return "clocks of programs need LD_PRELOAD, which " + runtime.GOOS + " does not have"
	}
	if self, err := os.Executable(); err == nil {
		if _, err := os.Stat(builtShim(self, clockShim)); err == nil {
			return ""
		}
	}
	if _, err := exec.LookPath("cc"); err != nil {
		return errNoCompiler.Error()
	}
	return ""
}

// ClientClock makes a clock in the deployment's directory. It shows true time until it is set.
func (t *Topology) ClientClock(ctx context.Context) (*ClientClock, error) {
	dir := filepath.Join(t.dir, clientClockDir)
	if t.dir == "" || strings.ContainsAny(dir, " :") {
		return nil, fmt.Errorf("a clock for programs needs a directory without a space or a colon in its name, not %q",
			dir)
	}
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return nil, err
	}
	library, err := buildShim(ctx, dir, clockShim)
	c := &ClientClock{Library: library, File: filepath.Join(dir, "shows")}
	return c, errors.Join(err, os.WriteFile(c.File, make([]byte, clockSize), 0o600))
}

// Env is the environment of a program that sees the clock.
func (c *ClientClock) Env() []string {
	return []string{"LD_PRELOAD=" + c.Library, "HAMMERLOCK_CLOCK=" + c.File}
}

// Set makes the clock show true time plus the offset. Changes are numbered from 1.
func (c *ClientClock) Set(change int64, offset time.Duration) error {
	return setClock(c.File, 2*change, offset, 1)
}
