package topologies

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// EmbeddedName selects the in-memory server instead of a server program.
const EmbeddedName = "embedded"

// ErrNoServer means that no server program was found.
var ErrNoServer = errors.New("no redis-server on this machine")

// oldest is the first major version of Redis with bind-source-addr and CLUSTER ADDSLOTSRANGE.
const oldest = 7

var binaries = []string{"redis-server", "valkey-server", "redict-server"}

// Server is the program that runs on every node.
type Server struct {
	Path    string
	Name    string // as the program reports it: Redis, Valkey or Redict
	Version string
}

func (s Server) Embedded() bool { return s.Path == EmbeddedName }

func (s Server) String() string { return strings.TrimSpace(s.Name + " " + s.Version) }

var versionLine = regexp.MustCompile(`^(Redis|Valkey|Redict) server v=(\S+)`)

// FindServer checks the program at a path. If the path is empty, it looks for one of the names in binaries in PATH,
// and returns ErrNoServer if there is none.
func FindServer(ctx context.Context, path string) (Server, error) {
	if path == EmbeddedName {
		return Server{Path: EmbeddedName, Name: EmbeddedName}, nil
	}
	if path == "" {
		for _, name := range binaries {
			if _, err := exec.LookPath(name); err == nil {
				return FindServer(ctx, name)
			}
		}
		return Server{}, ErrNoServer
	}
	found, err := exec.LookPath(path)
	if errors.Is(err, exec.ErrNotFound) {
		return Server{},
			fmt.Errorf("there is no program %q on the path; write ./%s for one in this directory, or %s to do without",
				path, path, EmbeddedName)
	}
	if err == nil {
		found, err = filepath.Abs(found) // absolute, because nodes start in their own directories
	}
	if err != nil {
		return Server{}, fmt.Errorf("server binary %q: %w", path, err)
	}
	return identify(ctx, found)
}

// versionTimeout is the time that a program has to print its version; the machine may be busy and the disk slow.
const versionTimeout = 20 * time.Second

func identify(ctx context.Context, path string) (Server, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return Server{},
			fmt.Errorf("%s --version did not end within %s: the machine is too busy, or it is no Redis server", path,
				versionTimeout)
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		ended := ""
		if err != nil {
			ended = fmt.Sprintf(" and ended with %v", err)
		}
		return Server{}, fmt.Errorf("%s is no Redis, Valkey or Redict server: --version printed %.60q%s", path, out,
			ended)
	}
	s := Server{Path: path, Name: string(m[1]), Version: string(m[2])}
	major, err := strconv.Atoi(strings.Split(s.Version, ".")[0])
	if err != nil || major < oldest {
		return Server{}, fmt.Errorf("%s is %s: %d.0 or newer is needed", path, s, oldest)
	}
	return s, nil
}

// InstallHint returns the command that installs Redis on this system.
func InstallHint() string {
	for _, m := range []struct{ tool, command string }{
		{"apt-get", "apt-get install redis-server"},
		{"dnf", "dnf install redis"},
		{"apk", "apk add redis"},
		{"brew", "brew install redis"},
	} {
		if _, err := exec.LookPath(m.tool); err == nil {
			return m.command
		}
	}
	return "install Redis 7 or newer for " + runtime.GOOS
}
