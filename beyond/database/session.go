package database

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"hammerlock/locks"
	"hammerlock/topologies"
)

// ConnectTimeout bounds the time for a connection and its login.
const ConnectTimeout = time.Second

// Conn is a worker's own connection, independent of the client library.
type Conn interface {
	Exec(ctx context.Context, statement string, args ...any) (rows int64, err error)
	QueryRow(ctx context.Context, query string, args ...any) Row
	Alive() bool  // as far as known without asking the server
	Break() error // closes the connection without notice, like the death of its worker
}

// Row is a query's result. Scan returns sql.ErrNoRows if the result has no row.
type Row interface{ Scan(into ...any) error }

// Session is a worker's own connection, opened on demand, and again after it broke.
type Session struct {
	server  *Server
	connect func(context.Context) (Conn, error)
	conn    Conn // nil = not open
}

// get returns the connection. After an error, nothing was sent to the server.
func (s *Session) get(ctx context.Context) (Conn, error) {
	if s.conn != nil && s.conn.Alive() {
		return s.conn, nil
	}
	_ = s.Close() // the old connection may be broken
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", topologies.ErrUnreachable, err)
	}
	s.conn = conn
	return conn, nil
}

// row makes the row of a lock, unless that was done before, and returns the connection.
func (s *Session) row(ctx context.Context, made map[string]bool, statement, key string) (Conn, error) {
	conn, err := s.get(ctx)
	if err != nil || made[key] {
		return conn, err
	}
	_, err = conn.Exec(ctx, statement, key)
	made[key] = err == nil
	return conn, s.server.Outcome(err)
}

// Own executes a statement that changes the row of a hold. It returns locks.ErrLost if the statement changed no row.
func (s *Session) Own(ctx context.Context, statement string, args ...any) error {
	conn, err := s.get(ctx)
	if err != nil {
		return err
	}
	rows, err := conn.Exec(ctx, statement, args...)
	if err == nil && rows == 0 {
		return locks.ErrLost
	}
	return s.server.Outcome(err)
}

// Close breaks the connection, like the worker's death.
func (s *Session) Close() error {
	if s.conn == nil {
		return nil
	}
	conn := s.conn
	s.conn = nil
	return conn.Break()
}

// Truth reads the boolean result of a query. If the result is false or null, Truth returns its second argument,
// which is an error.
func (s *Server) Truth(answer Row, no error) error {
	var yes sql.NullBool
	err := answer.Scan(&yes)
	if err == nil && !yes.Bool {
		return no
	}
	return s.Outcome(err)
}
