package postgres

import (
	"context"
	"crypto/rand"
	"database/sql"
	"time"

	"hammerlock/beyond/database"
	"hammerlock/history"
	"hammerlock/locks"
)

var row = locks.Spec{
	Name:   "pg-row",
	Doc:    "INSERT of a row with the lock's name as its key, DELETE to give it back, no expiry",
	Source: "the lock table of most articles that compare databases with Redis",
	Sites:  locks.OneSite,
	Engine: engineName,
	Broken: "never expires: when its holder dies nobody gets the lock again",
	Caught: []locks.Symptom{{Cause: "deadlock", Fault: "crash-worker"}},
	Claims: history.Claims{Excludes: true, Owned: true},
	Open: func(e locks.Env) (locks.Lock, error) {
		s, err := open(e)
		return &rowLock{unending{s}, `DELETE FROM taken WHERE name = $1 AND token = $2`, func(ctx context.Context, h locks.Lease) error {
			return busyIfLost(s.own(ctx, `INSERT INTO taken VALUES ($1, $2) ON CONFLICT DO NOTHING`, h.Key, h.Token))
		}}, err
	},
}

var selectInsert = locks.Spec{
	Name:   "pg-select-insert",
	Doc:    "SELECT whether there is a row of that name, INSERT it if not; no unique key",
	Source: "if (!exists) { insert } in application code",
	Sites:  locks.OneSite,
	Engine: engineName,
	Broken: "two workers see that there is none, and both insert one",
	Caught: []locks.Symptom{{Cause: "double-grant", Fault: "none"}},
	Claims: history.Claims{Excludes: true, Owned: true},
	Open: func(e locks.Env) (locks.Lock, error) {
		s, err := open(e)
		return &rowLock{unending{s}, `DELETE FROM noted WHERE name = $1 AND token = $2`, func(ctx context.Context, h locks.Lease) error {
			conn, err := s.get(ctx)
			if err != nil {
				return err
			}
			var there bool
			if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM noted WHERE name = $1)`, h.Key).Scan(&there); err != nil {
				return outcome(err)
			}
			if there {
				return locks.ErrBusy
			}
			if e.Pause != nil {
				if err := e.Pause(ctx, h.Key); err != nil {
					return err
				}
			}
			return s.own(ctx, `INSERT INTO noted VALUES ($1, $2)`, h.Key, h.Token)
		}}, err
	},
}

var autocommit = locks.Spec{
	Name:   "pg-autocommit",
	Doc:    "SELECT .. FOR UPDATE NOWAIT without a transaction",
	Source: "FOR UPDATE in a repository method that nobody has marked as transactional",
	Sites:  locks.OneSite,
	Engine: engineName,
	Broken: "the statement is a transaction of its own: the row is free again when the answer arrives",
	Caught: []locks.Symptom{{Cause: "double-grant", Fault: "none"}, {Cause: "foreign-release", Fault: "none"}},
	Claims: history.Claims{Excludes: true},
	Open: func(e locks.Env) (locks.Lock, error) {
		s, err := open(e)
		return &rowLock{unending{s}, `SELECT 1 FROM rows WHERE name = $1 AND $2 <> ''`, func(ctx context.Context, h locks.Lease) error {
			if err := s.own(ctx, makeRow+` RETURNING 1`, h.Key); err != nil && err != locks.ErrLost {
				return err
			}
			return busyIfLost(s.own(ctx, rowForUpdate+` NOWAIT`, h.Key))
		}}, err
	},
}

// rowLock takes a row with one function, and gives it back with a statement.
type rowLock struct {
	unending
	free string
	take func(context.Context, locks.Lease) error
}

// unending is the session of a lock without a lease.
type unending struct{ *session }

func (unending) Extend(_ context.Context, h locks.Lease, _ time.Duration) (locks.Lease, error) {
	return h, nil
}

func (l *rowLock) Acquire(ctx context.Context, key string, _ time.Duration) (locks.Lease, error) {
	h := locks.Lease{Key: key, Token: rand.Text()}
	return h, l.take(ctx, h)
}

func (l *rowLock) Release(ctx context.Context, h locks.Lease) error {
	return l.own(ctx, l.free, h.Key, h.Token)
}

// busyIfLost reads the answer of a statement that changes nothing if somebody else has the lock.
func busyIfLost(err error) error {
	if err == locks.ErrLost {
		return locks.ErrBusy
	}
	return err
}

var pooledAdvisory = database.Pooled{
	Name:    "pg-advisory-pool",
	Doc:     "pg_try_advisory_lock and pg_advisory_unlock, each on whatever connection the pool has",
	Engine:  engineName,
	Take:    `SELECT pg_try_advisory_lock(hashtextextended($1, 0))`,
	Give:    `SELECT pg_advisory_unlock(hashtextextended($1, 0))`,
	Connect: func(e locks.Env) (*sql.DB, error) { return pool(e.Places[0], e.Source) },
	Outcome: outcome,
}.Spec()
