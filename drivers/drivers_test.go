// Package drivers_test runs the shipped drivers, as far as this machine has their libraries. The command "make
// drivers" installs the libraries.
package drivers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"hammerlock/internal/cli"
	"hammerlock/internal/live"
	"hammerlock/internal/scripts"
)

// TestMain is the suite if it is started as a worker process.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		if code := cli.Verify(context.Background(), cli.Env{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout,
			Stderr: os.Stderr}); code != cli.Usage {
			os.Exit(code)
		}
	}
	if len(os.Args) == 3 && os.Args[1] == "evil" {
		os.Exit(scripts.EvilDriver(os.Args[2], os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

func bareNode(t *testing.T) string {
	t.Helper()
	_, err := exec.LookPath("node")
	live.Need(t, err == nil, "node")
	return "node"
}

func node(t *testing.T) string {
	t.Helper()
	bareNode(t)
	_, err := os.Stat("node/node_modules")
	live.Need(t, err == nil, "drivers/node/node_modules")
	return "node node/driver.js "
}

// php is an interpreter that has the extension and Symfony Lock.
func php(t *testing.T) string {
	t.Helper()
	live.Need(t, exec.Command("php", "-r", `require "Symfony/Component/Lock/autoload.php"; new Redis();`).Run() == nil,
		"php with Symfony Lock and ext-redis")
	return "php"
}

// golang builds the driver in Go, with the modules that it names.
func golang(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "driver")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir = "go"
	text, err := build.CombinedOutput()
	live.Need(t, err == nil, "a module of drivers/go: "+string(text))
	return binary
}

// commands are the drivers, by the name that they give themselves.
var commands = map[string]func(*testing.T) string{
	"template":      func(t *testing.T) string { return live.Python(t, "json") + " python/template.py" },
	"leader":        func(t *testing.T) string { return live.Python(t, "json") + " python/leader.py" },
	"node-template": func(t *testing.T) string { return bareNode(t) + " node/template.js" },
	"redis-py":      func(t *testing.T) string { return live.Python(t, "redis") + " python/redis_py.py" },
	"redis-py-asyncio": func(t *testing.T) string {
		return live.Python(t, "redis.asyncio") + " python/redis_py.py asyncio"
	},
	"redis-py-waits": func(t *testing.T) string { return live.Python(t, "redis") + " python/redis_py.py waits" },
	"redis-py-asyncio-waits": func(t *testing.T) string {
		return live.Python(t, "redis.asyncio") + " python/redis_py.py asyncio waits"
	},
	"redlock":                 func(t *testing.T) string { return node(t) + "redlock" },
	"sesamecare":              func(t *testing.T) string { return node(t) + "sesamecare" },
	"redis-semaphore":         func(t *testing.T) string { return node(t) + "redis-semaphore" },
	"redis-semaphore-refresh": func(t *testing.T) string { return node(t) + "redis-semaphore-refresh" },
	"redis-lock":              func(t *testing.T) string { return node(t) + "redis-lock" },
	"symfony":                 func(t *testing.T) string { return php(t) + " php/symfony.php" },
	"go-redislock":            golang,
	"go-redislock-waits":      func(t *testing.T) string { return golang(t) + " waits" },
}

// TestTheTemplatesAreShort: what is to be read before three functions are filled in.
func TestTheTemplatesAreShort(t *testing.T) {
	for _, file := range []string{"python/template.py", "node/template.js"} {
		text, err := os.ReadFile(file)
		code := 0
		for line := range bytes.Lines(text) {
			if line = bytes.TrimSpace(line); len(line) > 0 && !bytes.HasPrefix(line, []byte("//")) &&
				!bytes.HasPrefix(line, []byte("#")) && !bytes.Contains(line, []byte(`"""`)) {
				code++
			}
		}
		if err != nil || code > 65 {
			t.Errorf("%s has %d lines of code, %v", file, code, err)
		}
	}
}

// TestShippedDrivers lets each of them lock a page for a second.
func TestShippedDrivers(t *testing.T) {
	t.Parallel()
	for name, command := range commands {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			driver := command(t)
			live.Again(t, func(int) string { return ships(t, name, driver) })
		})
	}
}

// TestTemplatesExtend runs the templates in a scenario in which holders extend their leases. A lock that renews its
// leases by itself answers "unsupported".
func TestTemplatesExtend(t *testing.T) {
	if testing.Short() {
		t.Skip("five runs of five seconds")
	}
	for name, command := range map[string]func(*testing.T) string{
		"template": commands["template"], "leader": commands["leader"], "node-template": commands["node-template"],
		"read-write": func(t *testing.T) string { return live.Python(t, "json") + " python/read_write.py" },
		"semaphore":  func(t *testing.T) string { return live.Python(t, "json") + " python/semaphore.py" },
	} {
		t.Run(name, func(t *testing.T) {
			driver := command(t)
			live.Again(t, func(int) string { return ships(t, name, driver, "--scenario", "comeback") })
		})
	}
}

// ships runs a driver with the given flags, or for a second without faults. It returns a reason if the run is
// undecided: the driver was too late to be asked for a lock.
func ships(t *testing.T, name, command string, flags ...string) (undecided string) {
	calm := flags == nil
	if calm {
		flags = []string{"--fault", "none", "--workers", "4", "--duration", "1s"}
	}
	args := append(flags, "--topology", "single", "--lock", "exec:"+command, "--json", "--quiet", "--out", t.TempDir())
	var out, log bytes.Buffer
	code := cli.Verify(t.Context(), cli.Env{Args: args, Getenv: os.Getenv, Stdout: &out, Stderr: &log})
	var d cli.Document
	if err := json.Unmarshal(out.Bytes(), &d); err != nil || len(d.Runs) != 1 {
		t.Fatalf("exit code %d, %v\n%s", code, err, log.String())
	}
	r := d.Runs[0]
	if code == cli.Inconclusive && r.Visits.Done == 0 {
		return d.Exit.Reason
	}
	if code != cli.Passed && code != cli.Inconclusive { // it may be late on a busy machine
		t.Errorf("exit code %d: %s", code, d.Exit.Reason)
	}
	if r.Lock != "exec:"+name+"@"+r.Driver.Version || r.Visits.Done == 0 ||
		calm && len(r.Driver.Failures) > 0 {
		t.Errorf("%s: %+v, %+v", r.Lock, r.Visits, *r.Driver)
	}
	return ""
}
