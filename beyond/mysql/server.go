package mysql

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

	"hammerlock/topologies"
)

// engineName is what locks and topologies call the server.
const engineName = "MariaDB"

// owner is the user that the suite and all clients are; schema is theirs.
const (
	owner  = "hammerlock"
	schema = "locks"
)

var topology = server.Topology(topologies.Spec{
	Name:     "mysql",
	Doc:      "one MariaDB, which keeps what it has committed over a crash, and ends sessions with their connections",
	Nodes:    1,
	Recovery: 2 * time.Second,
})

var server = &topologies.Engine{
	Name: engineName, Find: find, Prepare: bootstrap, Command: command, Info: info, Ready: ready, Empty: empty, Asks: asks,
	Unprivileged: true, Keeps: true,
}

// find looks for the server on the path and where Debian's packages have it.
func find(ctx context.Context) (topologies.Server, error) {
	path, err := exec.LookPath("mariadbd")
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/mariadbd")
	}
	if err != nil {
		return topologies.Server{}, errors.New("no mariadbd on this machine; to install it: make beyond-servers")
	}
	out, err := exec.CommandContext(ctx, path, "--no-defaults", "--version").Output()
	_, version, ok := strings.Cut(string(out), "Ver ")
	if err != nil || !ok {
		return topologies.Server{}, fmt.Errorf("%s --version printed %.60q: %w", path, out, err)
	}
	version, _, _ = strings.Cut(version, "-")
	return topologies.Server{Path: path, Name: engineName, Version: version}, nil
}

// settings are those of every process on a node's data, the first of them first.
func settings(n *topologies.Node) []string {
	return []string{"--no-defaults", "--datadir=" + filepath.Join(n.Dir(), "data"), "--tmpdir=" + filepath.Join(n.Dir(), "tmp"),
		"--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M"}
}

// bootstrap makes the system tables, the user and the database, as mariadb-install-db does, which is in another package. The
// server takes one statement a line.
func bootstrap(ctx context.Context, n *topologies.Node) error {
	who, err := n.User()
	if err != nil {
		return err
	}
	for _, name := range []string{"data", "tmp"} {
		path := filepath.Join(n.Dir(), name)
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
		if who == nil {
			continue
		}
		if err := os.Chown(path, int(who.Uid), int(who.Gid)); err != nil {
			return err
		}
	}
	script := []byte("create database mysql;\nuse mysql;\nset @auth_root_socket=NULL;\n")
	share := filepath.Join(filepath.Dir(filepath.Dir(n.Server().Path)), "share", "mysql")
	for _, name := range []string{"mysql_system_tables.sql", "mysql_system_tables_data.sql"} {
		text, err := os.ReadFile(filepath.Join(share, name))
		if err != nil {
			return err
		}
		script = append(script, text...)
	}
	script = fmt.Appendf(script, "flush privileges;\ncreate user '%s'@'%%' identified by '%s';\ngrant all on *.* to '%[1]s'@'%%';\ncreate database %[3]s;\n",
		owner, n.Password(), schema)
	cmd := exec.CommandContext(ctx, n.Server().Path, append(settings(n), "--bootstrap", "--skip-networking")...)
	cmd.Dir, cmd.Stdin = n.Dir(), bytes.NewReader(script)
	if who != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("bootstrap: %w\n%s", err, bytes.TrimSpace(out))
	}
	return nil
}

// maxConnections is enough for a connection a worker, and the counter's.
const maxConnections = "400"

// command runs the server on TCP; its socket, which it does not do without, has a name relative to its data: a path would be too long.
func command(n *topologies.Node) (*exec.Cmd, error) {
	host, port, err := net.SplitHostPort(n.Back())
	if err != nil {
		return nil, err
	}
	return exec.Command(n.Server().Path, append(settings(n), "--skip-networking=0", "--bind-address="+host, "--port="+port, "--socket=s.sock",
		"--pid-file=server.pid", "--performance-schema=off", "--skip-log-bin", "--skip-name-resolve", "--max-connections="+maxConnections,
		"--innodb-lock-wait-timeout=60", "--thread-stack=256K")...), nil
}

// asker is the suite's own connections, past all links.
func asker(n *topologies.Node) (*sql.DB, error) { return connect(config(n.Back(), n.Password())) }

func info(ctx context.Context, n *topologies.Node) (map[string]string, error) {
	db, err := topologies.Asker(n, asker)
	if err != nil {
		return nil, err
	}
	var clients int
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM information_schema.processlist WHERE user = ?`, owner).Scan(&clients)
	return map[string]string{"role": "master", "connected_clients": strconv.Itoa(clients)}, err
}

// ready makes the tables when the server is new, and writes.
func ready(ctx context.Context, n *topologies.Node) error {
	return run(ctx, n, append(tables[:len(tables):len(tables)], `REPLACE INTO ready VALUES (1, now(6))`))
}

// empty ends the sessions of clients, with all that they hold, and empties the tables.
func empty(ctx context.Context, nodes []*topologies.Node) error {
	db, err := topologies.Asker(nodes[0], asker)
	if err != nil {
		return err
	}
	var others sql.NullString
	if err := db.QueryRowContext(ctx, `SELECT group_concat('KILL ', id SEPARATOR ';') FROM information_schema.processlist
		WHERE user = ? AND id <> connection_id()`, owner).Scan(&others); err != nil {
		return err
	}
	for one := range strings.SplitSeq(others.String, ";") {
		_, _ = db.ExecContext(ctx, one) // it may have ended
	}
	return run(ctx, nodes[0], cleared)
}

func run(ctx context.Context, n *topologies.Node, statements []string) error {
	db, err := topologies.Asker(n, asker)
	for i := 0; err == nil && i < len(statements); i++ {
		_, err = db.ExecContext(ctx, statements[i])
	}
	return err
}

// The commands that have a statement carried out, in the first byte after the header of a packet.
const (
	header  = 4
	query   = 3
	execute = 23
)

func asks(sent []byte) bool {
	return len(sent) > header && (sent[header] == query || sent[header] == execute)
}
