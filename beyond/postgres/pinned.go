package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hammerlock/beyond/database"
	"hammerlock/history"
	"hammerlock/locks"
)

var advisory = server.ByConnection(locks.Spec{
	Name:   "advisory",
	Doc:    "pg_advisory_lock of a hash of the name, on a connection of the worker's own; waits in the server",
	Source: "Explicit Locking: advisory locks, session level",
	Claims: history.Claims{Excludes: true, Owned: true, Wakes: true},
	Waits:  true,
}, func(s *database.Session) locks.Lock { return database.Pin(s, exclusive) })

var exclusive = database.Pins{Take: take{lock: `SELECT pg_advisory_lock(hashtextextended($1, 0))`,
	free: server.Names.Give}.within, Give: unlock(server.Names.Give)}

var advisoryXact = server.ByConnection(locks.Spec{
	Name:   "advisory-xact",
	Doc:    "pg_advisory_xact_lock in a transaction that is open as long as the hold",
	Source: "Explicit Locking: advisory locks, transaction level",
	Claims: advisory.Claims,
	Waits:  true,
}, func(s *database.Session) locks.Lock {
	return database.Pin(s, database.Pins{Take: take{lock: `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`,
		transaction: true}.within, Give: commit})
})

var forUpdate = server.ByConnection(locks.Spec{
	Name: "for-update",
	Doc: "SELECT .. FOR UPDATE of the lock's row in a transaction that is open as long as the hold, " +
		"then a fence from a sequence",
	Source: "Explicit Locking: row-level locks",
	Claims: history.Claims{Excludes: true, Owned: true, Wakes: true, Fences: true},
	Waits:  true,
}, func(s *database.Session) locks.Lock { return database.Pin(s, ofRow(rowForUpdate)) })

var skipLocked = server.ByConnection(locks.Spec{
	Name:   "skip-locked",
	Doc:    "as pg-for-update, but SKIP LOCKED: who does not get the row hears so at once, and tries again later",
	Source: "SELECT: SKIP LOCKED; the job queues that are built on it",
	Claims: history.Claims{Excludes: true, Owned: true, Fences: true},
}, func(s *database.Session) locks.Lock {
	return struct{ locks.Lock }{database.Pin(s, ofRow(rowForUpdate+` SKIP LOCKED`))} // hides AcquireWithin
})

const (
	rowForUpdate = `SELECT 1 FROM rows WHERE name = $1 FOR UPDATE`
	makeRow      = `INSERT INTO rows VALUES ($1) ON CONFLICT DO NOTHING`
	freeShared   = `SELECT pg_advisory_unlock_shared(hashtextextended($1, 0))`
)

func ofRow(query string) database.Pins {
	return database.Pins{Row: makeRow, Take: take{lock: query, row: true, transaction: true}.within, Give: commit}
}

var advisoryRW = server.ByConnection(locks.Spec{
	Name: "advisory-rw",
	Doc: "pg_advisory_lock for a writer, pg_advisory_lock_shared for readers, on a connection of the worker's own; " +
		"all wait in the server's queue, where no reader overtakes a writer",
	Source: "Explicit Locking: advisory locks, session level, shared; " +
		"src/backend/storage/lmgr/README: waiters come first",
	Claims: history.Claims{Excludes: true, Owned: true, Wakes: true, Readers: true, Writers: true},
	Waits:  true,
}, func(s *database.Session) locks.Lock {
	return &readWrite{Pinned: database.Pin(s, exclusive), reader: database.Pin(s, database.Pins{
		Take: take{lock: `SELECT pg_advisory_lock_shared(hashtextextended($1, 0))`, free: freeShared}.within,
		Give: unlock(freeShared),
	})}
})

// readWrite is a writer and a reader that share a connection.
type readWrite struct {
	*database.Pinned
	reader *database.Pinned
}

// AcquireShare makes the caller a reader. It waits in the server, at most for the length of a lease.
func (l *readWrite) AcquireShare(ctx context.Context, key string, ttl time.Duration, permits int) (locks.Lease, error) {
	h, err := l.reader.AcquireWithin(ctx, key, ttl, ttl)
	h.Permits = permits
	return h, err
}

func (l *readWrite) Extend(ctx context.Context, h locks.Lease, ttl time.Duration) (locks.Lease, error) {
	return l.of(h).Extend(ctx, h, ttl)
}

func (l *readWrite) Release(ctx context.Context, h locks.Lease) error { return l.of(h).Release(ctx, h) }

func (l *readWrite) of(h locks.Lease) *database.Pinned {
	if h.Permits > 0 {
		return l.reader
	}
	return l.Pinned
}

// take has the statements that wait for a lock. They are sent in one round trip.
type take struct {
	lock        string // the statement that waits
	free        string // statement that releases a possible grant; empty for a transaction
	row         bool   // the statement grants only if it returns a row, and a fence is drawn then
	transaction bool   // the hold is a transaction
}

// least is the shortest timeout to set, because a timeout of 0 means none.
const least = time.Millisecond

func (t take) within(ctx context.Context, on database.Conn, key string, wait time.Duration) (fence int64, err error) {
	b := &pgx.Batch{}
	if t.transaction {
		b.Queue(`BEGIN`)
	}
	b.Queue(`SELECT set_config('lock_timeout', $1, $2)`, fmt.Sprint(max(wait, least).Milliseconds()), t.transaction)
	taken := b.Queue(t.lock, key)
	if t.row {
		taken.QueryRow(func(r pgx.Row) error { return r.Scan(new(int)) }) // no row = skipped
		// The fence is drawn after the grant, and no rollback takes it back.
		b.Queue(`SELECT nextval('fences')`).QueryRow(func(r pgx.Row) error { return r.Scan(&fence) })
	}
	if err := on.(*conn).SendBatch(ctx, b).Close(); err != nil {
		return 0, t.undo(ctx, on, key, err)
	}
	return fence, nil
}

// undo leaves nothing of a failed try. It rolls back a transaction, and drops a connection in an unknown state. A
// session's lock survives an error, for example a timeout just at the grant, so undo releases it.
func (t take) undo(ctx context.Context, on database.Conn, key string, why error) error {
	if errors.Is(why, sql.ErrNoRows) {
		why = locks.ErrBusy
	}
	if !on.Alive() {
		return outcome(why)
	}
	var err error
	if t.transaction {
		_, err = on.Exec(ctx, `ROLLBACK`)
	} else if err = unlock(t.free)(ctx, on, key); errors.Is(err, locks.ErrLost) {
		err = nil
	}
	if err != nil {
		_ = on.Break() // ends the transaction or frees the lock
	}
	return outcome(why)
}

// unlock returns a function that releases a session's lock. The result of the query says whether the session
// had the lock.
func unlock(query string) func(context.Context, database.Conn, string) error {
	return func(ctx context.Context, on database.Conn, key string) error {
		return server.Truth(on.QueryRow(ctx, query, key), locks.ErrLost)
	}
}

// commit ends the transaction, and with it the hold.
func commit(ctx context.Context, on database.Conn, _ string) error {
	done, err := on.(*conn).Conn.Exec(ctx, `COMMIT`)
	if err == nil && done.String() != "COMMIT" {
		return locks.ErrLost
	}
	return outcome(err)
}
