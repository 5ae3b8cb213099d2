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

// owner is the user that initdb makes, whom the suite and all clients are.
const owner = "hammerlock"

var topology = server.Topology(topologies.Engine{
	Find: program.Find, Prepare: initialize, Command: command, End: syscall.SIGQUIT, Sweep: sweep, Asks: asks,
})

var program = engine.Program{
	Engine: server.Engine, Name: "postgres", Elsewhere: "/usr/lib/postgresql/*/bin/postgres",
	Ask: []string{"--version"}, Version: regexp.MustCompile(`\(PostgreSQL\) (\S+)`),
}

// initialize makes the node's data directory. Nothing is synced: no run outlives the machine.
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
	// initdb made the file: its owner stays
	return os.WriteFile(filepath.Join(dataDir(n), "pg_hba.conf"), []byte(whoMayConnect), 0o600)
}

// whoMayConnect lets in whoever knows the password, also through a link, which has an address of its own.
const whoMayConnect = "host all all 127.0.0.0/8 password\n"

func dataDir(n *topologies.Node) string { return filepath.Join(n.Dir(), "data") }

// maxConnections is enough for a connection a worker, and the counter's.
const maxConnections = "400"

// command runs the server on TCP alone. Its dynamic shared memory is in files of its directory, where nobody has to
// look for it.
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

// sharedMemory is the line of postmaster.pid with the key and the number of a segment, which a server that was killed
// leaves.
const sharedMemory = 6

func sweep(n *topologies.Node) error {
	text, err := os.ReadFile(filepath.Join(dataDir(n), "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil // it has ended unexpectedly
	}
	lines := strings.Split(string(text), "\n")
	if err != nil || len(lines) <= sharedMemory {
		return err
	}
	var key, id int
	if _, err := fmt.Sscan(lines[sharedMemory], &key, &id); err != nil {
		return nil // it was killed before it had one
	}
	if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil && !errors.Is(err, unix.EINVAL) &&
		!errors.Is(err, unix.EIDRM) {
		return fmt.Errorf("remove the shared memory of %s: %w", n.Name, err)
	}
	return nil
}

// asks knows the messages that have a statement carried out: Query, Execute, and what libraries send before it.
func asks(sent []byte) bool { return len(sent) > 0 && bytes.IndexByte([]byte("QPBE"), sent[0]) >= 0 }
