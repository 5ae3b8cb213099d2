package mysql

import (
	"context"
	"database/sql"
	"math"
	"time"

	"hammerlock/beyond/database"
	"hammerlock/history"
	"hammerlock/locks"
)

// SYSDATE is evaluated when the row is locked; NOW is the start of the statement. The answer to the UPDATE returns the
// fence as the last insert ID.
var leases = database.Leases{
	Make: `INSERT IGNORE INTO leases VALUES (?, '', '1970-01-02', 0)`,
	Take: func(ctx context.Context, on database.Conn, h locks.Lease, ttl time.Duration) (int64, error) {
		r, err := on.(*conn).ExecContext(ctx,
			`UPDATE leases
			SET token = ?, expires = SYSDATE(6) + INTERVAL ? MICROSECOND, fence = LAST_INSERT_ID(fence + 1)
			WHERE name = ? AND expires <= SYSDATE(6)`, h.Token, ttl.Microseconds(), h.Key)
		if err != nil {
			return 0, err
		}
		if rows, err := r.RowsAffected(); err == nil && rows == 0 {
			return 0, sql.ErrNoRows
		}
		return r.LastInsertId()
	},
	Extend: `UPDATE leases SET expires = SYSDATE(6) + INTERVAL ? MICROSECOND
		WHERE name = ? AND token = ? AND expires > SYSDATE(6)`,
	Release: `UPDATE leases SET token = '', expires = '1970-01-02'
		WHERE name = ? AND token = ? AND expires > SYSDATE(6)`,
}

var getLock = server.ByConnection(locks.Spec{
	Name:   "get-lock",
	Doc:    "GET_LOCK and RELEASE_LOCK on a connection of the worker's own; waits in the server",
	Source: "Locking Functions",
	Claims: history.Claims{Excludes: true, Owned: true, Wakes: true},
	Waits:  true,
}, func(s *database.Session) locks.Lock {
	return database.Pin(s, database.Pins{Take: getName, Give: giveName})
})

// getName waits in the server, for a number of seconds with a fraction. After a failed try the connection is dropped,
// because it may have the lock.
func getName(ctx context.Context, on database.Conn, key string, wait time.Duration) (int64, error) {
	err := server.Truth(on.QueryRow(ctx, `SELECT GET_LOCK(SHA1(?), ?)`, key, wait.Seconds()), locks.ErrBusy)
	if err != nil && err != locks.ErrBusy {
		_ = on.Break()
	}
	return 0, err
}

func giveName(ctx context.Context, on database.Conn, key string) error {
	return server.Truth(on.QueryRow(ctx, server.Names.Give, key), locks.ErrLost)
}

var forUpdate = server.ByConnection(locks.Spec{
	Name: "for-update",
	Doc: "SELECT .. FOR UPDATE of the lock's row in a transaction that is open as long as the " +
		"hold; waits in the server",
	Source: "InnoDB Locking Reads",
	Claims: history.Claims{Excludes: true, Owned: true, Wakes: true},
	Waits:  true,
}, func(s *database.Session) locks.Lock {
	return database.Pin(s, database.Pins{Row: `INSERT IGNORE INTO locked VALUES (?)`, Take: lockRow, Give: commit})
})

// lockRow waits in the server, for whole seconds only. If less than a second is left, it does not wait.
func lockRow(ctx context.Context, on database.Conn, key string, wait time.Duration) (int64, error) {
	_, err := on.Exec(ctx, `START TRANSACTION`)
	if err == nil {
		err = on.QueryRow(ctx, `SELECT 1 FROM locked WHERE name = ? FOR UPDATE WAIT ?`, key,
			int(math.Floor(wait.Seconds()))).Scan(new(int))
	}
	if err != nil {
		_ = on.Break() // ends the transaction as well
	}
	return 0, outcome(err)
}

func commit(ctx context.Context, on database.Conn, _ string) error {
	_, err := on.Exec(ctx, `COMMIT`)
	return outcome(err)
}
