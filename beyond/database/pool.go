// Package database has what locks and counters of different SQL databases have in common.
package database

import (
	"context"
	"crypto/rand"
	"database/sql"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// ByConnection is what a hold needs that the server knows by its connection.
const ByConnection = "the connection lasts as long as the hold: the server frees the lock when it ends, and the holder does not hear of it"

// Pooled is a wrong lock that the server ties to a connection, taken and given back on whatever connection a pool has.
type Pooled struct {
	Name, Doc, Engine string
	Take, Give        string // statements that ask for a truth, with the name of the lock
	Connect           func(locks.Env) (*sql.DB, error)
	Outcome           func(error) error // says what an error leaves certain, as locks.Outcome does
}

// pooled is how many connections a process has.
const pooled = 4

// Spec is the lock.
func (p Pooled) Spec() locks.Spec {
	return locks.Spec{
		Name:   p.Name,
		Doc:    p.Doc,
		Source: "database/sql, sql.DB: a pool of connections, used as if it were one",
		Sites:  locks.OneSite,
		Engine: p.Engine,
		Broken: "the connection has the lock, not the worker: the next worker on it is granted it again, and another cannot give it back",
		Caught: []locks.Symptom{{Cause: "double-grant", Fault: "none"}},
		Claims: history.Claims{Excludes: true, Owned: true},
		Open: func(e locks.Env) (locks.Lock, error) {
			key := poolOf{e.Places[0].Name}
			db, err := locks.Share(e.Process, key, func() (*sql.DB, error) {
				db, err := p.Connect(e)
				if err == nil {
					db.SetMaxOpenConns(pooled)
					db.SetMaxIdleConns(pooled)
				}
				return db, err
			})
			return &poolLock{Pooled: p, db: db, process: e.Process, key: key}, err
		},
	}
}

// poolOf is the key of the connections that a process shares.
type poolOf struct{ site string }

type poolLock struct {
	Pooled
	db      *sql.DB
	process *locks.Process
	key     poolOf
}

func (l *poolLock) ask(ctx context.Context, query, key string, no error) error {
	var done sql.NullBool
	err := l.db.QueryRowContext(ctx, query, key).Scan(&done)
	if err == nil && !done.Bool {
		return no
	}
	return l.Outcome(err)
}

func (l *poolLock) Acquire(ctx context.Context, key string, _ time.Duration) (locks.Lease, error) {
	h := locks.Lease{Key: key, Token: rand.Text()}
	return h, l.ask(ctx, l.Take, key, locks.ErrBusy)
}

func (l *poolLock) Extend(_ context.Context, h locks.Lease, _ time.Duration) (locks.Lease, error) {
	return h, nil
}

func (l *poolLock) Release(ctx context.Context, h locks.Lease) error {
	return l.ask(ctx, l.Give, h.Key, locks.ErrLost)
}

func (l *poolLock) Close() error { return l.process.Drop(l.key) }
