// Package database has what the SQL databases have in common. The package of a database fills in a Server with its
// differences. From the Server it gets a topology, counters, the locks that are the same everywhere, and sessions
// for its other locks.
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

// Server describes a kind of database.
type Server struct {
	Name   string // of the topology and the counters
	Engine string // its name in locks and topologies
	Prefix string // of lock names
	Manual string // title of the manual that describes the statements

	// Connector returns a function with which a worker connects to a site. Its connections go through the links
	// of this source.
	Connector func(site *topologies.Site, source int) (func(context.Context) (Conn, error), error)
	// Pool opens connections for many users. Asker opens the suite's own connections, which bypass all links.
	Pool  func(site *topologies.Site, source int) (*sql.DB, error)
	Asker func(*topologies.Node) (*sql.DB, error)
	// Outcome converts a statement's error to one from which locks.Classify knows the outcome.
	Outcome func(error) error

	Ready   []string                                    // statements that make the missing tables and write a row
	Clients string                                      // a query that counts the client sessions
	Empty   func(ctx context.Context, db *sql.DB) error // ends these sessions and empties the tables

	Pages  workload.Statements
	Leases Leases
	Rows   Rows
	Names  Names
}

// Topology returns a topology of one server. The Engine says how to find and start the server; Topology adds the
// functions that query it.
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

// Run executes statements until the first error.
func Run(ctx context.Context, db *sql.DB, statements []string) error {
	for _, one := range statements {
		if _, err := db.ExecContext(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// Setup runs a program in the node's directory, as the user of its server.
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

// Give gives a file or directory to the user of the node's server.
func Give(n *topologies.Node, path string) error {
	who, err := n.User()
	if err != nil || who == nil {
		return err
	}
	return os.Chown(path, int(who.Uid), int(who.Gid))
}

func (s *Server) open(e locks.Env) (*Session, error) {
	if len(e.Places) != 1 {
		return nil, fmt.Errorf("%w: a lock on %s lives on one site", locks.ErrServer, s.Engine)
	}
	connect, err := s.Connector(e.Places[0], e.Source)
	return &Session{server: s, connect: connect}, err
}
