package mysql

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
	Name:   "my-row",
	Doc:    "INSERT of a row with the lock's name as its unique key, DELETE to give it back, no expiry",
	Source: "the lock table of most articles that compare databases with Redis",
	Sites:  locks.OneSite,
	Engine: engineName,
	Broken: "never expires: when its holder dies nobody gets the lock again",
	Caught: []locks.Symptom{{Cause: "deadlock", Fault: "crash-worker"}},
	Claims: history.Claims{Excludes: true, Owned: true},
	Open: func(e locks.Env) (locks.Lock, error) {
		s, err := open(e)
		return &rowLock{s, "taken", func(context.Context, string) error { return nil }}, err
	},
}

var selectInsert = locks.Spec{
	Name:   "my-select-insert",
	Doc:    "SELECT whether there is a row of that name, INSERT it if not; no unique key",
	Source: "if (!exists) { insert } in application code",
	Sites:  locks.OneSite,
	Engine: engineName,
	Broken: "two workers see that there is none, and both insert one",
	Caught: []locks.Symptom{{Cause: "double-grant", Fault: "none"}},
	Claims: history.Claims{Excludes: true, Owned: true},
	Open: func(e locks.Env) (locks.Lock, error) {
		s, err := open(e)
		return &rowLock{s, "noted", func(ctx context.Context, key string) error {
			conn, err := s.get(ctx)
			if err != nil {
				return err
			}
			var there bool
			if err := conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM noted WHERE name = ?)`, key).Scan(&there); err != nil {
				return outcome(err)
			}
			if there {
				return locks.ErrBusy
			}
			if e.Pause != nil {
				return e.Pause(ctx, key)
			}
			return nil
		}}, err
	},
}

// rowLock is a row in a table, after a look whether it may be taken.
type rowLock struct {
	*session
	table string
	look  func(ctx context.Context, key string) error
}

func (l *rowLock) Acquire(ctx context.Context, key string, _ time.Duration) (locks.Lease, error) {
	h := locks.Lease{Key: key, Token: rand.Text()}
	if err := l.look(ctx, key); err != nil {
		return h, err
	}
	return h, l.own(ctx, `INSERT INTO `+l.table+` VALUES (?, ?)`, key, h.Token)
}

func (l *rowLock) Extend(_ context.Context, h locks.Lease, _ time.Duration) (locks.Lease, error) {
	return h, nil
}

func (l *rowLock) Release(ctx context.Context, h locks.Lease) error {
	return l.own(ctx, `DELETE FROM `+l.table+` WHERE name = ? AND token = ?`, h.Key, h.Token)
}

var pooledGetLock = database.Pooled{
	Name:    "my-get-lock-pool",
	Doc:     "GET_LOCK and RELEASE_LOCK, each on whatever connection the pool has",
	Engine:  engineName,
	Take:    `SELECT GET_LOCK(?, 0)`,
	Give:    `SELECT RELEASE_LOCK(?)`,
	Connect: func(e locks.Env) (*sql.DB, error) { return connect(siteConfig(e.Places[0], e.Source)) },
	Outcome: outcome,
}.Spec()
