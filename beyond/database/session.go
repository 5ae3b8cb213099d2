package database

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"hammerlock/locks"
	"hammerlock/topologies"
)

// ConnectTimeout bounds how long a connection may take, with its login.
const ConnectTimeout = time.Second

// Conn is a connection that a worker has for itself, in the words of no client library.
type Conn interface {
	Exec(ctx context.Context, statement string, args ...any) (rows int64, err error)
	QueryRow(ctx context.Context, query string, args ...any) Row
	Alive() bool  // as far as is known without asking the server
	Break() error // as the death of its user does; it is not alive any more
}

// Row is what a query has found. Its error is sql.ErrNoRows if that is nothing.
type Row interface{ Scan(into ...any) error }

// Session is a worker's own connection. It is made when it is first needed, and again when it has broken.
type Session struct {
	server  *Server
	connect func(context.Context) (Conn, error)
	conn    Conn // nil before it is opened
}

// get is the connection. An error says that nothing was asked of the server.
func (s *Session) get(ctx context.Context) (Conn, error) {
	if s.conn != nil && s.conn.Alive() {
		return s.conn, nil
	}
	_ = s.Close() // what has broken
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", topologies.ErrUnreachable, err)
	}
	s.conn = conn
	return conn, nil
}

// row is the connection, after a statement that makes the row of a lock, once.
func (s *Session) row(ctx context.Context, made map[string]bool, statement, key string) (Conn, error) {
	conn, err := s.get(ctx)
	if err != nil || made[key] {
		return conn, err
	}
	_, err = conn.Exec(ctx, statement, key)
	made[key] = err == nil
	return conn, s.server.Outcome(err)
}

// Own changes the row of a hold: locks.ErrLost if it is no longer there.
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

// Close breaks the connection, as the death of the worker does.
func (s *Session) Close() error {
	if s.conn == nil {
		return nil
	}
	conn := s.conn
	s.conn = nil
	return conn.Break()
}

// Truth reads the answer of a statement that says yes, or else what the given error says.
func (s *Server) Truth(answer Row, no error) error {
	var yes sql.NullBool
	err := answer.Scan(&yes)
	if err == nil && !yes.Bool {
		return no
	}
	return s.Outcome(err)
}
