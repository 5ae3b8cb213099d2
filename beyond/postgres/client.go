package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"hammerlock/locks"
	"hammerlock/topologies"
)

// connectTimeout bounds how long a connection may take, with its login.
const connectTimeout = time.Second

// config says how to connect to an address.
func config(addr, password string) (*pgx.ConnConfig, error) {
	c, err := pgx.ParseConfig((&url.URL{Scheme: "postgres", User: url.UserPassword(owner, password), Host: addr, Path: "/postgres", RawQuery: "sslmode=disable"}).String())
	if err != nil {
		return nil, err
	}
	c.ConnectTimeout = connectTimeout
	return c, nil
}

// siteConfig connects as the suite's clients of Redis do: links tell processes apart.
func siteConfig(site *topologies.Site, source int) (*pgx.ConnConfig, error) {
	c, err := config(site.Addrs()[0], site.Password())
	if err != nil {
		return nil, err
	}
	c.DialFunc = site.Dialer(source)
	return c, nil
}

// session is a worker's own connection. It is made when it is first needed, and again when it has broken.
type session struct {
	config *pgx.ConnConfig
	conn   *pgx.Conn
}

// open is the session of a worker.
func open(e locks.Env) (*session, error) {
	if len(e.Places) != 1 {
		return nil, fmt.Errorf("%w: a lock on %s lives on one site", locks.ErrServer, engineName)
	}
	c, err := siteConfig(e.Places[0], e.Source)
	return &session{config: c}, err
}

// get is the connection. An error says that nothing was asked of the server.
func (s *session) get(ctx context.Context) (*pgx.Conn, error) {
	if s.conn != nil && !s.conn.IsClosed() {
		return s.conn, nil
	}
	conn, err := pgx.ConnectConfig(ctx, s.config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", topologies.ErrUnreachable, err)
	}
	s.conn = conn
	return conn, nil
}

// row is the connection, after a statement that makes the row of a lock, once.
func (s *session) row(ctx context.Context, made map[string]bool, statement, key string) (*pgx.Conn, error) {
	conn, err := s.get(ctx)
	if err != nil || made[key] {
		return conn, err
	}
	_, err = conn.Exec(ctx, statement, key)
	made[key] = err == nil
	return conn, outcome(err)
}

// Close breaks the connection, as the death of the worker does.
func (s *session) Close() error {
	if s.conn == nil || s.conn.IsClosed() {
		return nil
	}
	return s.conn.PgConn().Conn().Close()
}

// The codes of errors that say that nothing was done.
const (
	lockNotAvailable = "55P03"
	queryCanceled    = "57014"
	cannotConnectNow = "57P03"
	deadlockDetected = "40P01"
	serialization    = "40001"
	uniqueViolation  = "23505"
)

// outcome says what an error of one statement leaves certain: nothing was sent, or the server has answered that it did nothing.
func outcome(err error) error {
	if err == nil || errors.Is(err, topologies.ErrUnreachable) {
		return err
	}
	if pgconn.SafeToRetry(err) {
		return fmt.Errorf("%w: %w", topologies.ErrUnreachable, err)
	}
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch answer.Code {
		case lockNotAvailable, uniqueViolation:
			return fmt.Errorf("%w: %w", locks.ErrBusy, err)
		case queryCanceled, cannotConnectNow, deadlockDetected, serialization:
			return fmt.Errorf("%w: %w", locks.ErrRefused, err)
		}
	}
	return err
}
