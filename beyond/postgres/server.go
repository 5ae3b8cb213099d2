package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"hammerlock/beyond/database"
	"hammerlock/beyond/engine"
	"hammerlock/topologies"
)

// owner is the user that initdb makes, for the suite and all clients.
const owner = "hammerlock"

var topology = server.Topology(topologies.Engine{
	Find: program.Find, Prepare: initialize, Command: command, End: syscall.SIGQUIT, Sweep: sweep, Asks: asks,
})

var program = engine.Program{
	Engine: server.Engine, Name: "postgres", Elsewhere: "/usr/lib/postgresql/*/bin/postgres",
	Ask: []string{"--version"}, Version: regexp.MustCompile(`\(PostgreSQL\) (\S+)`),
}

// initialize makes the node's data directory. It does not sync it to the disk, because no run goes on after a crash
// of the machine.
func initialize(ctx context.Context, n *topologies.Node) error {
	secret := filepath.Join(n.Dir(), "password")
	if err := errors.Join(os.WriteFile(secret, []byte(n.Password()), 0o600), database.Give(n, secret)); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(n.Server().Path), "initdb"), "-D", dataDir(n), "-U",
		owner, "-A", "password",
		"--pwfile", secret, "--no-sync", "--no-locale", "-E", "UTF8")
	if err := database.Setup(n, "initdb", cmd); err != nil {
		return err
	}
	// initdb made the file, so its owner is right
	return os.WriteFile(filepath.Join(dataDir(n), "pg_hba.conf"), []byte(whoMayConnect), 0o600)
}

// whoMayConnect accepts the password from any loopback address, because each link has its own loopback address.
const whoMayConnect = "host all all 127.0.0.0/8 password\n"

func dataDir(n *topologies.Node) string { return filepath.Join(n.Dir(), "data") }

// maxConnections is enough for one connection of each worker, and those of the counter.
const maxConnections = "400"

// command runs the server on TCP only. Dynamic shared memory is in files of its directory, which are removed with it.
func command(n *topologies.Node) (*exec.Cmd, error) {
	host, port, err := net.SplitHostPort(n.Back())
	if err != nil {
		return nil, err
	}
	args := []string{"-D", dataDir(n), "-p", port}
	for _, setting := range []string{
		"listen_addresses=" + host, "unix_socket_directories=", "shared_buffers=16MB", "max_connections=" +
			maxConnections,
		"dynamic_shared_memory_type=mmap", "restart_after_crash=off", "autovacuum_naptime=5s",
	} {
		args = append(args, "-c", setting)
	}
	return exec.Command(n.Server().Path, args...), nil
}

// sharedMemory is the index of the line in postmaster.pid that has the key and number of a shared memory segment. A
// killed server leaves this segment behind.
const sharedMemory = 6

func sweep(n *topologies.Node) error {
	text, err := os.ReadFile(filepath.Join(dataDir(n), "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil // the server removed it when it exited
	}
	lines := strings.Split(string(text), "\n")
	if err != nil || len(lines) <= sharedMemory {
		return err
	}
	var key, id int
	if _, err := fmt.Sscan(lines[sharedMemory], &key, &id); err != nil {
		return nil // killed before it had one
	}
	if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil && !errors.Is(err, unix.EINVAL) &&
		!errors.Is(err, unix.EIDRM) {
		return fmt.Errorf("remove the shared memory of %s: %w", n.Name, err)
	}
	return nil
}

// asks recognizes messages that execute a statement: Query and Execute, and the messages Parse and Bind
// before an Execute.
func asks(sent []byte) bool { return len(sent) > 0 && bytes.IndexByte([]byte("QPBE"), sent[0]) >= 0 }
