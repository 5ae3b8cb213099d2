package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"

	"hammerlock/locks"
	"hammerlock/topologies"
)

// connectTimeout bounds how long a connection may take.
const connectTimeout = time.Second

// config says how to connect to an address. Statements are prepared by the client: one round trip each.
func config(addr, password string) *mysql.Config {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName, c.Timeout, c.InterpolateParams = owner, password, "tcp", addr, schema, connectTimeout, true
	c.Logger = silent{}
	return c
}

// silent is a logger: what the library has to say is in its errors as well.
type silent struct{}

func (silent) Print(...any) {}

// connect is a pool of connections.
func connect(c *mysql.Config) (*sql.DB, error) {
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// siteConfig connects as the suite's clients of Redis do: links tell processes apart.
func siteConfig(site *topologies.Site, source int) *mysql.Config {
	c := config(site.Addrs()[0], site.Password())
	c.DialFunc = site.Dialer(source)
	return c
}

// session is a worker's own connection. It is made when it is first needed, and again when it has broken.
type session struct {
	db   *sql.DB
	conn *sql.Conn
}

// open is the session of a worker.
func open(e locks.Env) (*session, error) {
	if len(e.Places) != 1 {
		return nil, fmt.Errorf("%w: a lock on %s lives on one site", locks.ErrServer, engineName)
	}
	db, err := connect(siteConfig(e.Places[0], e.Source))
	return &session{db: db}, err
}

// get is the connection. An error says that nothing was asked of the server.
func (s *session) get(ctx context.Context) (*sql.Conn, error) {
	if s.conn != nil && s.conn.Raw(func(c any) error { return alive(c) }) == nil {
		return s.conn, nil
	}
	s.drop()
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", topologies.ErrUnreachable, err)
	}
	s.conn = conn
	return conn, nil
}

// alive asks the library whether it has given a connection up.
func alive(c any) error {
	if v, ok := c.(driver.Validator); ok && !v.IsValid() {
		return driver.ErrBadConn
	}
	return nil
}

// drop gives the connection up, with all that the server knows by it.
func (s *session) drop() {
	if s.conn != nil {
		_ = s.conn.Raw(func(any) error { return driver.ErrBadConn }) // which closes it
		_ = s.conn.Close()
		s.conn = nil
	}
}

// Close breaks the connection, as the death of the worker does.
func (s *session) Close() error {
	s.drop()
	return s.db.Close()
}

// own changes the row of a hold: locks.ErrLost if it is no longer there.
func (s *session) own(ctx context.Context, statement string, args ...any) error {
	conn, err := s.get(ctx)
	if err != nil {
		return err
	}
	r, err := conn.ExecContext(ctx, statement, args...)
	if err != nil {
		return outcome(err)
	}
	if rows, err := r.RowsAffected(); err == nil && rows == 0 {
		return locks.ErrLost
	}
	return nil
}

// The numbers of errors that say that nothing was done.
const (
	duplicate       = 1062
	lockWaitTimeout = 1205
	deadlock        = 1213
	interrupted     = 1317
)

// outcome says what an error of one statement leaves certain: nothing was sent, or the server has answered that it did nothing.
func outcome(err error) error {
	if err == nil || errors.Is(err, topologies.ErrUnreachable) {
		return err
	}
	if errors.Is(err, driver.ErrBadConn) {
		return fmt.Errorf("%w: %w", topologies.ErrUnreachable, err) // the library had sent nothing
	}
	if answer, ok := errors.AsType[*mysql.MySQLError](err); ok {
		switch answer.Number {
		case duplicate, lockWaitTimeout:
			return fmt.Errorf("%w: %w", locks.ErrBusy, err)
		case deadlock, interrupted:
			return fmt.Errorf("%w: %w", locks.ErrRefused, err)
		}
	}
	return err
}
