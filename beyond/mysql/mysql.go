// Package mysql tests locks on MySQL or MariaDB: it has a server with its faults, right and wrong locks that people
// build on it, and counters. It starts MariaDB.
package mysql

import (
	"hammerlock/beyond/database"
	"hammerlock/locks"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Topologies, Locks and Counters are for the commands. The first lock is the main one of the topology.
var (
	Topologies = []topologies.Spec{topology}
	Locks      = []locks.Spec{server.Lease(), getLock, forUpdate, server.Row(), server.SelectInsert(),
		server.Pooled("get-lock", "GET_LOCK and RELEASE_LOCK")}
	Counters = server.Counters(topology)
)

var server = &database.Server{
	Name: "mysql", Engine: "MariaDB", Prefix: "my-", Manual: "MySQL",
	Connector: connector, Pool: pool, Asker: asker, Outcome: outcome,
	Ready:   ready,
	Clients: `SELECT count(*) FROM information_schema.processlist WHERE user = '` + owner + `'`,
	Empty:   empty,
	Pages:   pages,
	Leases:  leases,
	Rows: database.Rows{
		Insert: `INSERT INTO taken VALUES (?, ?)`, Delete: `DELETE FROM taken WHERE name = ? AND token = ?`,
		There: `SELECT EXISTS (SELECT 1 FROM noted WHERE name = ?)`,
		Add:   `INSERT INTO noted VALUES (?, ?)`, Remove: `DELETE FROM noted WHERE name = ? AND token = ?`,
	},
	Names: database.Names{Take: `SELECT GET_LOCK(SHA1(?), 0)`, Give: `SELECT RELEASE_LOCK(SHA1(?))`},
}

// ready has the statements that make the tables. The lock's name is the primary key of each table of locks except that
// of my-select-insert.
var ready = []string{
	`CREATE TABLE IF NOT EXISTS ready (id int PRIMARY KEY, at datetime(6))`,
	`CREATE TABLE IF NOT EXISTS leases (name varchar(200) PRIMARY KEY, token varchar(64) NOT NULL,
		expires datetime(6) NOT NULL, fence bigint NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS locked (name varchar(200) PRIMARY KEY)`,
	`CREATE TABLE IF NOT EXISTS taken (name varchar(200) PRIMARY KEY, token varchar(64) NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS noted (name varchar(200), token varchar(64) NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS pages (page varchar(200) PRIMARY KEY, views bigint NOT NULL,
		writer bigint NOT NULL, fence bigint NOT NULL)`,
	`REPLACE INTO ready VALUES (1, now(6))`,
}

var cleared = []string{`DELETE FROM leases`, `DELETE FROM locked`, `DELETE FROM taken`, `DELETE FROM noted`,
	`DELETE FROM pages`}

// writePage begins the counter's statements. Assignments run from left to right, so the compared column comes last.
// Unchanged rows do not count as affected.
const writePage = `INSERT INTO pages VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE `

var pages = workload.Statements{
	Load:        `SELECT views, writer, fence FROM pages WHERE page = ?`,
	LoadToWrite: `SELECT views, writer, fence FROM pages WHERE page = ? FOR UPDATE`,
	Make:        `INSERT IGNORE INTO pages VALUES (?, 0, 0, 0)`,
	Write:       writePage + `views = VALUES(views), writer = VALUES(writer), fence = VALUES(fence)`,
	WriteIfNewer: writePage +
		`views = IF(fence < VALUES(fence), VALUES(views), views),
		writer = IF(fence < VALUES(fence), VALUES(writer), writer),
		fence = GREATEST(fence, VALUES(fence))`,
	WriteIfSame: writePage +
		`views = IF(@same := (writer = ?), VALUES(views), views), fence = IF(@same, VALUES(fence), fence),
		writer = IF(@same, VALUES(writer), writer)`,
	Outcome: outcome,
}
