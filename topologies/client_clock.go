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

// ClientClock is a wall clock that a program under test reads instead of the machine's clock. It is a preloaded
// library, so the program must ask the C library for the time: Python and Node do, Go does not. It is plain data,
// because another process may start the program.
type ClientClock struct {
	Library string // path of the preloaded library
	File    string // file with the clock's offset
}

// clientClockDir is the subdirectory of the deployment's directory for the files of client clocks.
const clientClockDir = "client-clock"

// NoClientClock returns the reason why this machine cannot set a program's clock; empty if it can.
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

// Read tells whether the program has read its clock since the change with this number.
func (c *ClientClock) Read(change int64) (bool, error) {
	b, err := os.ReadFile(c.File)
	return err == nil && int64(binary.NativeEndian.Uint64(b[clockSize-8:])) == 2*change, err
}

// Set makes the clock show true time plus the offset. The argument change is the number of the call, from 1.
func (c *ClientClock) Set(change int64, offset time.Duration) error {
	return setClock(c.File, 2*change, offset, 1)
}
