// Package mysql is what a lock on MySQL or MariaDB needs: a server that is started and broken as those of Redis are, the locks
// that people build on it, right and wrong, and counters in it. The server that is started is MariaDB.
package mysql

import (
	"hammerlock/beyond/database"
	"hammerlock/locks"
	"hammerlock/topologies"
)

// Topologies, Locks and Counters are what the commands are told of; the first lock is the one that the topology is made for.
var (
	Topologies = []topologies.Spec{topology}
	Locks      = []locks.Spec{lease, getLock, forUpdate, row, selectInsert, pooledGetLock}
	Counters   = database.Counters(topology, "MariaDB", openCounter, statements)
)

// tables are what the server is given when it is new, a statement each.
var tables = []string{
	`CREATE TABLE IF NOT EXISTS ready (id int PRIMARY KEY, at datetime(6))`,
	`CREATE TABLE IF NOT EXISTS leases (name varchar(200) PRIMARY KEY, token varchar(64) NOT NULL, expires datetime(6) NOT NULL, fence bigint NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS locked (name varchar(200) PRIMARY KEY)`,
	`CREATE TABLE IF NOT EXISTS taken (name varchar(200) PRIMARY KEY, token varchar(64) NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS noted (name varchar(200), token varchar(64) NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS pages (page varchar(200) PRIMARY KEY, views bigint NOT NULL, writer bigint NOT NULL, fence bigint NOT NULL)`,
}

// cleared empties what runs write to.
var cleared = []string{`DELETE FROM leases`, `DELETE FROM locked`, `DELETE FROM taken`, `DELETE FROM noted`, `DELETE FROM pages`}
