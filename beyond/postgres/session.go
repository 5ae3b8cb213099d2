package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hammerlock/beyond/database"
	"hammerlock/history"
	"hammerlock/locks"
)

var advisory = locks.Spec{
	Name:    "pg-advisory",
	Doc:     "pg_advisory_lock of a hash of the name, on a connection of the worker's own; waits in the server",
	Source:  "PostgreSQL, Explicit Locking: advisory locks, session level",
	Sites:   locks.OneSite,
	Engine:  engineName,
	Assumes: database.ByConnection,
	Claims:  history.Claims{Excludes: true, Owned: true, Wakes: true},
	Session: true,
	Waits:   true,
	Open: func(e locks.Env) (locks.Lock, error) {
		s, err := open(e)
		return &pinned{session: s, take: `SELECT pg_advisory_lock(hashtextextended($1, 0))`, give: freeAdvisory}, err
	},
}

var advisoryXact = locks.Spec{
	Name:    "pg-advisory-xact",
	Doc:     "pg_advisory_xact_lock in a transaction that is open as long as the hold",
	Source:  "PostgreSQL, Explicit Locking: advisory locks, transaction level",
	Sites:   locks.OneSite,
	Engine:  engineName,
	Assumes: database.ByConnection,
	Claims:  advisory.Claims,
	Session: true,
	Waits:   true,
	Open: func(e locks.Env) (locks.Lock, error) {
		s, err := open(e)
		return &pinned{session: s, within: true, take: `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, give: commit}, err
	},
}

var forUpdate = locks.Spec{
	Name:    "pg-for-update",
	Doc:     "SELECT .. FOR UPDATE of the lock's row in a transaction that is open as long as the hold, then a fence from a sequence",
	Source:  "PostgreSQL, Explicit Locking: row-level locks",
	Sites:   locks.OneSite,
	Engine:  engineName,
	Assumes: database.ByConnection,
	Claims:  history.Claims{Excludes: true, Owned: true, Wakes: true, Fences: true},
	Session: true,
	Waits:   true,
	Open: func(e locks.Env) (locks.Lock, error) {
		s, err := open(e)
		return &pinned{session: s, within: true, rows: map[string]bool{}, take: rowForUpdate, fence: drawFence, give: commit}, err
	},
}

var skipLocked = locks.Spec{
	Name:    "pg-skip-locked",
	Doc:     "as pg-for-update, but SKIP LOCKED: who does not get the row hears so at once, and tries again later",
	Source:  "PostgreSQL, SELECT: SKIP LOCKED; the job queues that are built on it",
	Sites:   locks.OneSite,
	Engine:  engineName,
	Assumes: database.ByConnection,
	Claims:  history.Claims{Excludes: true, Owned: true, Fences: true},
	Session: true,
	Open: func(e locks.Env) (locks.Lock, error) {
		s, err := open(e)
		return skipping{&pinned{session: s, within: true, rows: map[string]bool{}, take: rowForUpdate + ` SKIP LOCKED`, fence: drawFence, give: commit}}, err
	},
}

// skipping is a pinned lock that does not wait.
type skipping struct{ lock *pinned }

func (s skipping) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return s.lock.Acquire(ctx, key, ttl)
}

func (s skipping) Extend(ctx context.Context, h locks.Lease, ttl time.Duration) (locks.Lease, error) {
	return s.lock.Extend(ctx, h, ttl)
}

func (s skipping) Release(ctx context.Context, h locks.Lease) error { return s.lock.Release(ctx, h) }
func (s skipping) Close() error                                     { return s.lock.Close() }

const (
	rowForUpdate = `SELECT 1 FROM rows WHERE name = $1 FOR UPDATE`
	drawFence    = `SELECT nextval('fences')` // after the grant: no transaction takes it back
	makeRow      = `INSERT INTO rows VALUES ($1) ON CONFLICT DO NOTHING`
)

// pinned is a lock that the server ties to the connection it was taken on. It waits in the server's queue.
type pinned struct {
	*session
	within bool            // a transaction, which ends with the hold
	rows   map[string]bool // that were made; nil if there are none
	take   string          // waits
	fence  string          // empty if there is none
	give   func(context.Context, *pgx.Conn, locks.Lease) error

	token string    // of the present hold
	on    *pgx.Conn // that it was granted on
}

// least is the shortest that the server can be told to wait: 0 would be for ever.
const least = time.Millisecond

func (p *pinned) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return p.AcquireWithin(ctx, key, ttl, least)
}

func (p *pinned) AcquireWithin(ctx context.Context, key string, _, wait time.Duration) (locks.Lease, error) {
	h := locks.Lease{Key: key, Token: rand.Text()}
	conn, err := p.get(ctx)
	if p.rows != nil {
		conn, err = p.row(ctx, p.rows, makeRow, key)
	}
	if err != nil {
		return h, err
	}
	b := &pgx.Batch{}
	if p.within {
		b.Queue(`BEGIN`)
	}
	b.Queue(`SELECT set_config('lock_timeout', $1, $2)`, fmt.Sprint(max(wait, least).Milliseconds()), p.within)
	taken := b.Queue(p.take, key)
	if p.rows != nil {
		taken.QueryRow(func(r pgx.Row) error { return r.Scan(new(int)) }) // no row: it was skipped
	}
	if p.fence != "" {
		b.Queue(p.fence).QueryRow(func(r pgx.Row) error { return r.Scan(&h.Fence) })
	}
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return h, p.undo(ctx, conn, err)
	}
	p.token, p.on = h.Token, conn
	return h, nil
}

// undo makes sure that nothing is left of a try that failed: a transaction is rolled back, a connection whose state is not known
// is given up.
func (p *pinned) undo(ctx context.Context, conn *pgx.Conn, why error) error {
	if errors.Is(why, pgx.ErrNoRows) {
		why = locks.ErrBusy
	}
	if conn.IsClosed() || !p.within {
		return outcome(why)
	}
	if _, err := conn.Exec(ctx, `ROLLBACK`); err != nil {
		_ = p.Close() // the connection takes the transaction with it
	}
	return outcome(why)
}

// Extend has nothing to lengthen: it asks whether the session is still there.
func (p *pinned) Extend(ctx context.Context, h locks.Lease, _ time.Duration) (locks.Lease, error) {
	if !p.holds(h) {
		return h, locks.ErrLost
	}
	_, err := p.on.Exec(ctx, `SELECT 1`)
	return h, outcome(err)
}

func (p *pinned) Release(ctx context.Context, h locks.Lease) error {
	if !p.holds(h) {
		return locks.ErrLost
	}
	p.token = ""
	return p.give(ctx, p.on, h)
}

// holds tells whether the connection that a hold was granted on is there, as far as is known.
func (p *pinned) holds(h locks.Lease) bool {
	return p.token == h.Token && p.on != nil && !p.on.IsClosed()
}

// freeAdvisory gives an advisory lock of the session back.
func freeAdvisory(ctx context.Context, conn *pgx.Conn, h locks.Lease) error {
	return unlock(ctx, conn, `SELECT pg_advisory_unlock(hashtextextended($1, 0))`, h)
}

// unlock sends a statement that answers whether the session had what it gives back.
func unlock(ctx context.Context, conn *pgx.Conn, statement string, h locks.Lease) error {
	var held bool
	err := conn.QueryRow(ctx, statement, h.Key).Scan(&held)
	if err == nil && !held {
		return locks.ErrLost
	}
	return outcome(err)
}

// commit ends the transaction, and with it the hold.
func commit(ctx context.Context, conn *pgx.Conn, _ locks.Lease) error {
	done, err := conn.Exec(ctx, `COMMIT`)
	if err == nil && done.String() != "COMMIT" {
		return locks.ErrLost
	}
	return outcome(err)
}
