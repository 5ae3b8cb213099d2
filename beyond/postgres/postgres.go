// Package postgres is what a lock on PostgreSQL needs: a server that is started and broken as those of Redis are, the locks that
// people build on it, right and wrong, and counters in it.
package postgres

import (
	"hammerlock/beyond/database"
	"hammerlock/locks"
	"hammerlock/topologies"
)

// Topologies, Locks and Counters are what the commands are told of; the first lock is the one that the topology is made for.
var (
	Topologies = []topologies.Spec{topology}
	Locks      = []locks.Spec{lease, advisory, advisoryXact, advisoryRW, forUpdate, skipLocked, row, selectInsert, autocommit, pooledAdvisory, leaseByName}
	Counters   = database.Counters(topology, "PostgreSQL", openCounter, statements)
)

// schema is what the server is given when it is new. Names of locks are keys of all tables but the one of selectInsert.
const schema = `
CREATE TABLE IF NOT EXISTS ready (id int PRIMARY KEY, at timestamptz);
CREATE TABLE IF NOT EXISTS leases (name text PRIMARY KEY, token text NOT NULL, expires timestamptz NOT NULL, fence bigint NOT NULL) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS rows (name text PRIMARY KEY);
CREATE TABLE IF NOT EXISTS taken (name text PRIMARY KEY, token text NOT NULL);
CREATE TABLE IF NOT EXISTS noted (name text, token text NOT NULL);
CREATE SEQUENCE IF NOT EXISTS fences;
CREATE TABLE IF NOT EXISTS pages (page text PRIMARY KEY, views bigint NOT NULL, writer bigint NOT NULL, fence bigint NOT NULL) WITH (fillfactor = 50);
INSERT INTO ready VALUES (1, now()) ON CONFLICT (id) DO UPDATE SET at = now()`

// cleared empties all of that. The sequence goes on.
const cleared = `TRUNCATE leases, rows, taken, noted, pages`
