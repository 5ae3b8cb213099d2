// Package database is what locks, counters and servers of SQL databases have in common. The differences between kinds
// of databases are in a Server, which its package fills in. It gets a topology, counters and the locks that are alike
// everywhere, and sessions to write the others on.
package database

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"hammerlock/locks"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Server is a kind of database, as far as it differs from the others.
type Server struct {
	Name   string // of the topology and the counters
	Engine string // as locks and topologies name it
	Prefix string // of the names of its locks
	Manual string // whose documents describe its statements

	// Connector is how a worker behind a source makes connections of its own to a site.
	Connector func(site *topologies.Site, source int) (func(context.Context) (Conn, error), error)
	// Pool are connections that many share, Asker those of the suite itself, past all links.
	Pool  func(site *topologies.Site, source int) (*sql.DB, error)
	Asker func(*topologies.Node) (*sql.DB, error)
	// Outcome says what an error of one statement leaves certain, as locks.Outcome does.
	Outcome func(error) error

	Ready   []string                                    // make the tables if there are none, and write
	Clients string                                      // a query that counts the sessions of clients
	Empty   func(ctx context.Context, db *sql.DB) error // ends those, with all that they hold, and empties the tables

	Pages  workload.Statements
	Leases Leases
	Rows   Rows
	Names  Names
}

// Topology is one server. The engine says how it is found and started; how it is asked is added here.
func (s *Server) Topology(e topologies.Engine) topologies.Spec {
	e.Name, e.Info, e.Unprivileged, e.Keeps = s.Engine, s.info, true, true
	e.Ready = func(ctx context.Context, n *topologies.Node) error {
		return s.ask(n, func(db *sql.DB) error { return Run(ctx, db, s.Ready) })
	}
	e.Empty = func(ctx context.Context, all []*topologies.Node) error {
		return s.ask(all[0], func(db *sql.DB) error { return s.Empty(ctx, db) })
	}
	return e.Topology(topologies.Spec{
		Name: s.Name,
		Doc: "one " + s.Engine +
			", which keeps what it has committed over a crash, and ends sessions with their connections",
		Nodes:    1,
		Recovery: 2 * time.Second,
	})
}

func (s *Server) ask(n *topologies.Node, do func(*sql.DB) error) error {
	db, err := topologies.Asker(n, s.Asker)
	if err != nil {
		return err
	}
	return do(db)
}

func (s *Server) info(ctx context.Context, n *topologies.Node) (map[string]string, error) {
	var clients int
	err := s.ask(n, func(db *sql.DB) error { return db.QueryRowContext(ctx, s.Clients).Scan(&clients) })
	if err != nil {
		return nil, err
	}
	return map[string]string{"role": "master", "connected_clients": strconv.Itoa(clients)}, nil
}

// Run has statements carried out, up to the first error.
func Run(ctx context.Context, db *sql.DB, statements []string) error {
	for _, one := range statements {
		if _, err := db.ExecContext(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// Setup runs a program in the node's directory, as who its server will be.
func Setup(n *topologies.Node, what string, cmd *exec.Cmd) error {
	who, err := n.User()
	if err != nil {
		return err
	}
	cmd.Dir = n.Dir()
	if who != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", what, err, bytes.TrimSpace(out))
	}
	return nil
}

// Give makes a file or directory theirs who the node's server will be.
func Give(n *topologies.Node, path string) error {
	who, err := n.User()
	if err != nil || who == nil {
		return err
	}
	return os.Chown(path, int(who.Uid), int(who.Gid))
}

// open is the session of a worker.
func (s *Server) open(e locks.Env) (*Session, error) {
	if len(e.Places) != 1 {
		return nil, fmt.Errorf("%w: a lock on %s lives on one site", locks.ErrServer, s.Engine)
	}
	connect, err := s.Connector(e.Places[0], e.Source)
	return &Session{server: s, connect: connect}, err
}
