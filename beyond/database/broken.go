package database

import (
	"context"
	"crypto/rand"
	"database/sql"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// Rows has the SQL statements of two wrong locks, which are table rows without expiry. A statement has the
// arguments name and token; the statement There has only the name.
type Rows struct {
	// Insert and Delete use a table with unique names. An Insert of an existing name changes nothing, or its error is
	// locks.ErrBusy.
	Insert, Delete string
	There          string // reads whether the second table has a row with the name
	Add, Remove    string // use the second table, in which names need not be unique
}

// Names has the queries that take and release a named lock of the server itself. The result of a query says whether it
// succeeded.
type Names struct{ Take, Give string }

// Row returns a wrong lock: a row that only its holder removes.
func (s *Server) Row() locks.Spec {
	return s.ByRow(locks.Spec{
		Name:   "row",
		Doc:    "INSERT of a row with the lock's name as its key, DELETE to give it back, no expiry",
		Source: "the lock table of most articles that compare databases with Redis",
		Broken: "never expires: when its holder dies no worker gets the lock again",
		Expect: []locks.Expectation{{Cause: history.Deadlock, Scenario: "crash"}},
		Claims: history.Claims{Excludes: true, Owned: true},
	}, s.Rows.Delete, func(e locks.Env, l *Session) func(context.Context, locks.Lease) error {
		return func(ctx context.Context, h locks.Lease) error { return l.Own(ctx, s.Rows.Insert, h.Key, h.Token) }
	})
}

// SelectInsert returns a wrong lock: it checks for a row before it inserts one.
func (s *Server) SelectInsert() locks.Spec {
	return s.ByRow(locks.Spec{
		Name:   "select-insert",
		Doc:    "SELECT whether there is a row of that name, INSERT it if not; no unique key",
		Source: "if (!exists) { insert } in application code",
		Broken: "two workers see no row, and both insert one",
		Expect: []locks.Expectation{{Cause: history.DoubleGrant, Scenario: "contention"}},
		Claims: history.Claims{Excludes: true, Owned: true},
	}, s.Rows.Remove, func(e locks.Env, l *Session) func(context.Context, locks.Lease) error {
		return func(ctx context.Context, h locks.Lease) error {
			conn, err := l.get(ctx)
			if err != nil {
				return err
			}
			var there bool
			if err := conn.QueryRow(ctx, s.Rows.There, h.Key).Scan(&there); err != nil {
				return s.Outcome(err)
			}
			if there {
				return locks.ErrBusy
			}
			if e.Pause != nil {
				if err := e.Pause(ctx, h.Key); err != nil {
					return err
				}
			}
			return l.Own(ctx, s.Rows.Add, h.Key, h.Token)
		}
	})
}

// ByRow completes the spec of a lock that is a table row without expiry. The function taker returns a function that
// inserts the row; its error is locks.ErrLost if no row was inserted. The statement free deletes the row.
func (s *Server) ByRow(l locks.Spec, free string,
	taker func(locks.Env, *Session) func(context.Context, locks.Lease) error) locks.Spec {
	l.Name, l.Sites, l.Engine = s.Prefix+l.Name, locks.OneSite, s.Engine
	l.Open = func(e locks.Env) (locks.Lock, error) {
		session, err := s.open(e)
		return &rowLock{session, taker(e, session), free}, err
	}
	return l
}

type rowLock struct {
	*Session
	take func(context.Context, locks.Lease) error
	free string // statement; its arguments are name and token
}

func (l *rowLock) Acquire(ctx context.Context, key string, _ time.Duration) (locks.Lease, error) {
	h := locks.Lease{Key: key, Token: rand.Text()}
	err := l.take(ctx, h)
	if err == locks.ErrLost {
		err = locks.ErrBusy
	}
	return h, err
}

func (l *rowLock) Extend(_ context.Context, h locks.Lease, _ time.Duration) (locks.Lease, error) {
	return h, nil
}

func (l *rowLock) Release(ctx context.Context, h locks.Lease) error {
	return l.Own(ctx, l.free, h.Key, h.Token)
}

// pooled is the number of a process's connections.
const pooled = 4

// Pooled returns a wrong lock: it sends the queries of Names on any connection of a pool, although the server ties the
// lock to one connection. The first parameter is the name of the correct lock, which becomes part of this lock's name.
func (s *Server) Pooled(right, doc string) locks.Spec {
	return locks.Spec{
		Name:   s.Prefix + right + "-pool",
		Doc:    doc + ", each on whatever connection the pool has",
		Source: "database/sql, sql.DB: a pool of connections, used as if it were one",
		Sites:  locks.OneSite,
		Engine: s.Engine,
		Broken: "the connection has the lock, not the worker: the next worker on it is granted it again, " +
			"and another cannot give it back",
		Expect: []locks.Expectation{{Cause: history.DoubleGrant, Scenario: "contention"}},
		Claims: history.Claims{Excludes: true, Owned: true},
		Open: func(e locks.Env) (locks.Lock, error) {
			key := poolOf{e.Places[0].Name}
			db, err := locks.Share(e.Process, key, func() (*sql.DB, error) {
				db, err := s.Pool(e.Places[0], e.Source)
				return bound(db, pooled), err
			})
			return &poolLock{s, db, e.Process, key}, err
		},
	}
}

// bound limits a pool's open and idle connections.
func bound(db *sql.DB, most int) *sql.DB {
	if db != nil {
		db.SetMaxOpenConns(most)
		db.SetMaxIdleConns(most)
	}
	return db
}

// poolOf is the key of a process's shared pool.
type poolOf struct{ site string }

type poolLock struct {
	server  *Server
	db      *sql.DB
	process *locks.Process
	key     poolOf
}

func (l *poolLock) Acquire(ctx context.Context, key string, _ time.Duration) (locks.Lease, error) {
	h := locks.Lease{Key: key, Token: rand.Text()}
	return h, l.server.Truth(l.db.QueryRowContext(ctx, l.server.Names.Take, key), locks.ErrBusy)
}

func (l *poolLock) Extend(_ context.Context, h locks.Lease, _ time.Duration) (locks.Lease, error) {
	return h, nil
}

func (l *poolLock) Release(ctx context.Context, h locks.Lease) error {
	return l.server.Truth(l.db.QueryRowContext(ctx, l.server.Names.Give, h.Key), locks.ErrLost)
}

func (l *poolLock) Close() error { return l.process.Drop(l.key) }
