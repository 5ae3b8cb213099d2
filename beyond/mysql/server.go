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
	"regexp"
	"strings"

	"hammerlock/beyond/database"
	"hammerlock/beyond/engine"
	"hammerlock/topologies"
)

// owner is the user of the suite and all clients; schema is their database.
const (
	owner  = "hammerlock"
	schema = "locks"
)

var topology = server.Topology(topologies.Engine{Find: program.Find, Prepare: bootstrap, Command: command, Asks: asks})

var program = engine.Program{
	Engine: server.Engine, Name: "mariadbd", Elsewhere: "/usr/sbin/mariadbd",
	Ask: []string{"--no-defaults", "--version"}, Version: regexp.MustCompile(`Ver ([^-\s]+)`),
}

// settings are the options for each process on a node's data. --no-defaults must come first.
func settings(n *topologies.Node) []string {
	return []string{"--no-defaults", "--datadir=" + filepath.Join(n.Dir(), "data"), "--tmpdir=" +
		filepath.Join(n.Dir(), "tmp"),
		"--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M"}
}

// bootstrap makes the system tables, the user and the database, like mariadb-install-db, which is in another package.
// The server reads one statement from each line.
func bootstrap(ctx context.Context, n *topologies.Node) error {
	for _, name := range []string{"data", "tmp"} {
		path := filepath.Join(n.Dir(), name)
		if err := errors.Join(os.Mkdir(path, 0o700), database.Give(n, path)); err != nil {
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
	script = fmt.Appendf(script,
		"flush privileges;\ncreate user '%s'@'%%' identified by '%s';\ngrant all on *.* to '%[1]s'@'%%';\n"+
			"create database %[3]s;\n",
		owner, n.Password(), schema)
	cmd := exec.CommandContext(ctx, n.Server().Path, append(settings(n), "--bootstrap", "--skip-networking")...)
	cmd.Stdin = bytes.NewReader(script)
	return database.Setup(n, "bootstrap", cmd)
}

// maxConnections is enough for one connection of each worker, and those of the counter.
const maxConnections = "400"

// command runs the server on TCP. The mandatory socket has a name relative to the data directory, because a full path
// would be too long.
func command(n *topologies.Node) (*exec.Cmd, error) {
	host, port, err := net.SplitHostPort(n.Back())
	if err != nil {
		return nil, err
	}
	return exec.Command(n.Server().Path,
		append(settings(n), "--skip-networking=0", "--bind-address="+host, "--port="+port, "--socket=s.sock",
			"--pid-file=server.pid", "--performance-schema=off", "--skip-log-bin", "--skip-name-resolve",
			"--max-connections="+maxConnections,
			"--innodb-lock-wait-timeout=60", "--thread-stack=256K")...), nil
}

func empty(ctx context.Context, db *sql.DB) error {
	var others sql.NullString
	if err := db.QueryRowContext(ctx,
		`SELECT group_concat('KILL ', id SEPARATOR ';') FROM information_schema.processlist
		WHERE user = ? AND id <> connection_id()`, owner).Scan(&others); err != nil {
		return err
	}
	for one := range strings.SplitSeq(others.String, ";") {
		_, _ = db.ExecContext(ctx, one) // it may have ended
	}
	return database.Run(ctx, db, cleared)
}

// Commands that execute a statement, in the first byte after a packet's header.
const (
	header  = 4
	query   = 3
	execute = 23
)

func asks(sent []byte) bool {
	return len(sent) > header && (sent[header] == query || sent[header] == execute)
}
