package postgres

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/sys/unix"

	"hammerlock/topologies"
)

// engineName is what locks and topologies call the server.
const engineName = "PostgreSQL"

// owner is the user that initdb makes, whom the suite and all clients are.
const owner = "hammerlock"

var topology = server.Topology(topologies.Spec{
	Name:     "postgres",
	Doc:      "one PostgreSQL, which keeps what it has committed over a crash, and ends sessions with their connections",
	Nodes:    1,
	Recovery: 2 * time.Second,
})

var server = &topologies.Engine{
	Name: engineName, Find: find, Prepare: initialize, Command: command, Info: info, Ready: ready, Empty: empty,
	End: syscall.SIGQUIT, Sweep: sweep, Asks: asks, Unprivileged: true, Keeps: true,
}

// find looks for the server on the path and where Debian's packages have it, the newest release first.
func find(ctx context.Context) (topologies.Server, error) {
	path, err := exec.LookPath("postgres")
	if err != nil {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // the pattern is good
		if len(found) == 0 {
			return topologies.Server{}, errors.New("no postgres on this machine; to install it: make beyond-servers")
		}
		path = found[len(found)-1]
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return topologies.Server{}, err
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	words := strings.Fields(string(out))
	if err != nil || len(words) < 3 {
		return topologies.Server{}, fmt.Errorf("%s --version printed %.60q: %w", path, out, err)
	}
	return topologies.Server{Path: path, Name: engineName, Version: words[2]}, nil
}

// initialize makes the node's data directory. Nothing is synced: no run outlives the machine.
func initialize(ctx context.Context, n *topologies.Node) error {
	who, err := n.User()
	if err != nil {
		return err
	}
	secret := filepath.Join(n.Dir(), "password")
	if err := os.WriteFile(secret, []byte(n.Password()), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(n.Server().Path), "initdb"), "-D", dataDir(n), "-U", owner, "-A", "password",
		"--pwfile", secret, "--no-sync", "--no-locale", "-E", "UTF8")
	if who != nil {
		if err := os.Chown(secret, int(who.Uid), int(who.Gid)); err != nil {
			return err
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	}
	cmd.Dir = n.Dir()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, bytes.TrimSpace(out))
	}
	return os.WriteFile(filepath.Join(dataDir(n), "pg_hba.conf"), []byte(whoMayConnect), 0o600) // initdb made the file: its owner stays
}

// whoMayConnect lets in whoever knows the password, also through a link, which has an address of its own.
const whoMayConnect = "host all all 127.0.0.0/8 password\n"

func dataDir(n *topologies.Node) string { return filepath.Join(n.Dir(), "data") }

// maxConnections is enough for a connection a worker, and the counter's.
const maxConnections = "400"

// command runs the server on TCP alone. Its dynamic shared memory is in files of its directory, where nobody has to look for it.
func command(n *topologies.Node) (*exec.Cmd, error) {
	host, port, err := net.SplitHostPort(n.Back())
	if err != nil {
		return nil, err
	}
	args := []string{"-D", dataDir(n), "-p", port}
	for _, setting := range []string{
		"listen_addresses=" + host, "unix_socket_directories=", "shared_buffers=16MB", "max_connections=" + maxConnections,
		"dynamic_shared_memory_type=mmap", "restart_after_crash=off", "autovacuum_naptime=5s",
	} {
		args = append(args, "-c", setting)
	}
	return exec.Command(n.Server().Path, args...), nil
}

// asker is the suite's own connections, past all links.
func asker(n *topologies.Node) (*sql.DB, error) {
	c, err := config(n.Back(), n.Password())
	if err != nil {
		return nil, err
	}
	c.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // several statements at once
	return stdlib.OpenDB(*c), nil
}

func info(ctx context.Context, n *topologies.Node) (map[string]string, error) {
	db, err := topologies.Asker(n, asker)
	if err != nil {
		return nil, err
	}
	var clients int
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'`).Scan(&clients)
	return map[string]string{"role": "master", "connected_clients": strconv.Itoa(clients)}, err
}

// ready makes the tables when the server is new, and writes.
func ready(ctx context.Context, n *topologies.Node) error { return run(ctx, n, schema) }

// empty ends the sessions of clients, with all that they hold, and empties the tables.
func empty(ctx context.Context, nodes []*topologies.Node) error {
	return run(ctx, nodes[0], `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
		WHERE backend_type = 'client backend' AND pid <> pg_backend_pid(); `+cleared)
}

func run(ctx context.Context, n *topologies.Node, statements string) error {
	db, err := topologies.Asker(n, asker)
	if err == nil {
		_, err = db.ExecContext(ctx, statements)
	}
	return err
}

// sharedMemory is the line of postmaster.pid with the key and the number of a segment, which a server that was killed leaves.
const sharedMemory = 6

func sweep(n *topologies.Node) error {
	text, err := os.ReadFile(filepath.Join(dataDir(n), "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil // it has ended by itself
	}
	lines := strings.Split(string(text), "\n")
	if err != nil || len(lines) <= sharedMemory {
		return err
	}
	var key, id int
	if _, err := fmt.Sscan(lines[sharedMemory], &key, &id); err != nil {
		return nil // it was killed before it had one
	}
	if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EIDRM) {
		return fmt.Errorf("remove the shared memory of %s: %w", n.Name, err)
	}
	return nil
}

// asks knows the messages that have a statement carried out: Query, Execute, and what libraries send before it.
func asks(sent []byte) bool { return len(sent) > 0 && bytes.IndexByte([]byte("QPBE"), sent[0]) >= 0 }
