// Package postgres tests locks on PostgreSQL: it has the server with its faults, right and wrong locks that people
// build on it, and counters.
package postgres

import (
	"context"
	"database/sql"

	"hammerlock/beyond/database"
	"hammerlock/locks"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Topologies, Locks and Counters are for the commands. The first lock is the main one of the topology.
var (
	Topologies = []topologies.Spec{topology}
	Locks      = []locks.Spec{
		server.Lease(), advisory, advisoryXact, advisoryRW, forUpdate, skipLocked,
		server.Row(), server.SelectInsert(), autocommit,
		server.Pooled("advisory", "pg_try_advisory_lock and pg_advisory_unlock"), leaseByName,
	}
	Counters = server.Counters(topology)
)

var server = &database.Server{
	Name: "postgres", Engine: "PostgreSQL", Prefix: "pg-", Manual: "PostgreSQL",
	Connector: connector, Pool: pool, Asker: asker, Outcome: outcome,
	Ready:   []string{ready},
	Clients: `SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'`,
	Empty:   func(ctx context.Context, db *sql.DB) error { return database.Run(ctx, db, []string{empty}) },
	Pages:   pages,
	Leases:  leases,
	Rows: database.Rows{
		Insert: `INSERT INTO taken VALUES ($1, $2) ON CONFLICT DO NOTHING`,
		Delete: `DELETE FROM taken WHERE name = $1 AND token = $2`,
		There:  `SELECT EXISTS (SELECT FROM noted WHERE name = $1)`,
		Add:    `INSERT INTO noted VALUES ($1, $2)`, Remove: `DELETE FROM noted WHERE name = $1 AND token = $2`,
	},
	Names: database.Names{
		Take: `SELECT pg_try_advisory_lock(hashtextextended($1, 0))`,
		Give: `SELECT pg_advisory_unlock(hashtextextended($1, 0))`,
	},
}

// ready has the statements that make the tables. The lock's name is the primary key of each table of locks except that
// of pg-select-insert.
const ready = `
CREATE TABLE IF NOT EXISTS ready (id int PRIMARY KEY, at timestamptz);
CREATE TABLE IF NOT EXISTS leases (name text PRIMARY KEY, token text NOT NULL, expires timestamptz NOT NULL,
	fence bigint NOT NULL) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS rows (name text PRIMARY KEY);
CREATE TABLE IF NOT EXISTS taken (name text PRIMARY KEY, token text NOT NULL);
CREATE TABLE IF NOT EXISTS noted (name text, token text NOT NULL);
CREATE SEQUENCE IF NOT EXISTS fences;
CREATE TABLE IF NOT EXISTS pages (page text PRIMARY KEY, views bigint NOT NULL, writer bigint NOT NULL,
	fence bigint NOT NULL) WITH (fillfactor = 50);
INSERT INTO ready VALUES (1, now()) ON CONFLICT (id) DO UPDATE SET at = now()`

// empty ends client sessions and empties the tables. The sequence continues.
const empty = `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
	WHERE backend_type = 'client backend' AND pid <> pg_backend_pid();
TRUNCATE leases, rows, taken, noted, pages`

const writePage = `INSERT INTO pages VALUES ($1, $2, $3, $4)
	ON CONFLICT (page) DO UPDATE SET views = excluded.views, writer = excluded.writer, fence = excluded.fence`

var pages = workload.Statements{
	Load:         `SELECT views, writer, fence FROM pages WHERE page = $1`,
	LoadToWrite:  `SELECT views, writer, fence FROM pages WHERE page = $1 FOR UPDATE`,
	Make:         `INSERT INTO pages VALUES ($1, 0, 0, 0) ON CONFLICT DO NOTHING`,
	Write:        writePage,
	WriteIfNewer: writePage + ` WHERE pages.fence < excluded.fence`,
	WriteIfSame:  writePage + ` WHERE pages.writer = $5`,
	Outcome:      outcome,
}
