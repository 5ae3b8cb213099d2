package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"hammerlock/beyond/database"
	"hammerlock/history"
	"hammerlock/locks"
)

var advisoryRW = locks.Spec{
	Name: "pg-advisory-rw",
	Doc: "pg_advisory_lock for a writer, pg_advisory_lock_shared for readers, on a connection of the worker's own; all wait in the server's " +
		"queue, where no reader overtakes a writer",
	Source:  "PostgreSQL, Explicit Locking: advisory locks, session level, shared; src/backend/storage/lmgr/README: waiters come first",
	Sites:   locks.OneSite,
	Engine:  engineName,
	Assumes: database.ByConnection,
	Claims:  history.Claims{Excludes: true, Owned: true, Wakes: true, Readers: true, Writers: true},
	Session: true,
	Open: func(e locks.Env) (locks.Lock, error) {
		s, err := open(e)
		return &readWrite{
			pinned: &pinned{session: s, take: `SELECT pg_advisory_lock(hashtextextended($1, 0))`, give: freeAdvisory},
			reader: &pinned{session: s, take: `SELECT pg_advisory_lock_shared(hashtextextended($1, 0))`, give: freeShared},
		}, err
	},
}

// readWrite is a writer and a reader, who share a connection.
type readWrite struct {
	*pinned
	reader *pinned
}

// AcquireShare makes the caller a reader. It waits in the server, but no longer than a lease.
func (l *readWrite) AcquireShare(ctx context.Context, key string, ttl time.Duration, permits int) (locks.Lease, error) {
	h, err := l.reader.AcquireWithin(ctx, key, ttl, ttl)
	h.Permits = permits
	return h, err
}

func (l *readWrite) Extend(ctx context.Context, h locks.Lease, ttl time.Duration) (locks.Lease, error) {
	return l.of(h).Extend(ctx, h, ttl)
}

func (l *readWrite) Release(ctx context.Context, h locks.Lease) error { return l.of(h).Release(ctx, h) }

func (l *readWrite) of(h locks.Lease) *pinned {
	if h.Permits > 0 {
		return l.reader
	}
	return l.pinned
}

func freeShared(ctx context.Context, conn *pgx.Conn, h locks.Lease) error {
	return unlock(ctx, conn, `SELECT pg_advisory_unlock_shared(hashtextextended($1, 0))`, h)
}
