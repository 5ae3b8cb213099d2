package topologies

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// ClientClock is a wall clock that a program under test reads in place of the machine's. It works by a preloaded
// library, so only for programs that ask the C library for the time: Python and Node do, Go does not. It is plain data,
// because another process may start the program.
type ClientClock struct {
	Library string // path of the preloaded library
	File    string // path of the file with the clock's offset
}

// clientClockDir is the directory, within the deployment's, for the files of client clocks.
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

// ClientClock makes a clock for a program. It shows true time until Set is called.
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

// Env returns the environment variables that make a program use the clock.
func (c *ClientClock) Env() []string {
	return []string{"LD_PRELOAD=" + c.Library, "HAMMERLOCK_CLOCK=" + c.File}
}

// Read tells whether the program has read its clock since that change.
func (c *ClientClock) Read(change int64) (bool, error) {
	b, err := os.ReadFile(c.File)
	return err == nil && int64(binary.NativeEndian.Uint64(b[clockSize-8:])) == 2*change, err
}

// Set makes the clock show true time plus the offset. The argument change counts the calls from 1.
func (c *ClientClock) Set(change int64, offset time.Duration) error {
	return setClock(c.File, 2*change, offset, 1)
}
