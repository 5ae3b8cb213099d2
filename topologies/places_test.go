package topologies

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDirectoriesMayHaveAnyName starts the topology that writes most into its directories. TMPDIR is relative, and
// its name has special characters of shells, configurations and the linker. The server's path is relative too.
func TestDirectoriesMayHaveAnyName(t *testing.T) {
	binary := server(t).Path
	t.Chdir(t.TempDir())
	if err := os.Symlink(binary, "redis-server"); err != nil {
		t.Fatal(err)
	}
	s, err := FindServer(t.Context(), "./redis-server")
	if err != nil {
		t.Fatal(err)
	}
	const odd = "a \"b' c\\d\n#e:%41$HOME"
	if err := os.Mkdir(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", "x*")
	if _, err := single.Up(t.Context(), Options{Server: s}); err == nil || !strings.Contains(err.Error(), "patterns") {
		t.Errorf("a name that is a pattern: %v", err)
	}
	t.Setenv("TMPDIR", odd)
	t.Run("up", func(t *testing.T) {
		for _, name := range []string{"replica", "sentinel", "cluster"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				top := up(t, name, Options{Server: s, Clock: true, Durable: SyncAlways, Power: true})
				n := top.Nodes[1]
				if err := errors.Join(n.SetClock(0, 1), n.Kill(), n.Start(t.Context()), n.PowerLoss(),
					n.Start(t.Context())); err != nil {
					t.Fatal(err)
				}
				if err := top.AwaitHealthy(t.Context()); err != nil {
					t.Error(err)
				}
				if err := top.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	})
	if left, err := os.ReadDir(odd); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestAProgramAroundTheServerMustExec: a program that does not exec the server is rejected, and nothing of it is
// left.
func TestAProgramAroundTheServerMustExec(t *testing.T) {
	real := server(t).Path
	dir := t.TempDir()
	for name, c := range map[string]struct{ script, want string }{
		"execs": {`exec "$SERVER" "$@"`, ""},
		"waits": {`"$SERVER" "$@" & echo $! >> "$0.pids"; wait`, "a program around the server must exec it"},
		"goes away": {`[ "$1" = --version ] && exec "$SERVER" "$@"; "$SERVER" "$@" & echo $! >> "$0.pids"`,
			"the server ended"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			script := "#!/bin/sh\nSERVER=" + real + "\n" + c.script + "\n"
			if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			s, err := FindServer(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			top, err := redlock.Up(t.Context(), Options{Server: s})
			if err == nil {
				err = top.Close()
			}
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if strings.Count(err.Error(), "must exec") > 1 {
				t.Errorf("it is said more than once: %v", err)
			}
			pids, err := os.ReadFile(path + ".pids")
			if err != nil {
				t.Fatal(err)
			}
			mustVanish(t, filepath.Join(dir, "nothing"), strings.Fields(string(pids)))
		})
	}
}
